//! The IR as text, for people and tests.

use super::facts::Guard;
use super::index::{Atom, Index};
use super::{
    Block, BufferRole, ElemTy, Expr, Kernel, LoopKind, Mem, MemArray, Program, Scope, Stmt, Update,
};
use std::fmt::{self, Display, Formatter, Write as _};

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, x) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{x}")?;
    }
    Ok(())
}

impl Display for ElemTy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.width {
            1 => write!(f, "{}", self.scalar),
            w => write!(f, "{}x{w}", self.scalar),
        }
    }
}

impl Display for Mem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Mem::Global(i) => write!(f, "global{i}"),
            Mem::Local(i) => write!(f, "local{i}"),
            Mem::Private(i) => write!(f, "private{i}"),
        }
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, x) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" && ")?;
            }
            write!(f, "{x} >= 0")?;
        }
        Ok(())
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Lit(l) => match (l.as_float(), l.as_int()) {
                (Some(x), _) => write!(f, "{x:?}"),
                (None, Some(i)) => write!(f, "{i}"),
                (None, None) => f.write_str("?"),
            },
            Expr::Arg(i, _) => write!(f, "arg{i}"),
            Expr::Reg(r) => f.write_str(&r.name),
            Expr::Index(i, t) => write!(f, "{t}({i})"),
            Expr::Load(m, t, i) if t.width == 1 => write!(f, "{m}[{i}]"),
            Expr::Load(m, t, i) => write!(f, "{m}[{i} .. +{}]", t.width),
            Expr::Op(op, _, es) => {
                write!(f, "{op:?}(")?;
                list(f, es)?;
                f.write_char(')')
            }
            Expr::Checked(check, es) => {
                write!(f, "{check:?}[")?;
                list(f, es)?;
                f.write_char(']')
            }
            Expr::If(c, a, b) => write!(f, "({c} ? {a} : {b})"),
            Expr::Guarded(g, a, b) => write!(f, "({g} ? {a} : {b})"),
            Expr::Splat(e, w) => write!(f, "splat{w}({e})"),
            Expr::Vector(es) => {
                f.write_char('<')?;
                list(f, es)?;
                f.write_char('>')
            }
            Expr::Lane(e, k) => write!(f, "{e}.{k}"),
            Expr::Matrices(false, e) => write!(f, "matrices({e})"),
            Expr::Matrices(true, e) => write!(f, "turned_matrices({e})"),
            Expr::Products(of, es) => {
                write!(f, "{}(", of.capability())?;
                list(f, es)?;
                f.write_char(')')
            }
        }
    }
}

fn block(f: &mut Formatter<'_>, b: &Block, depth: usize) -> fmt::Result {
    b.iter().try_for_each(|s| stmt(f, s, depth))
}

fn stmt(f: &mut Formatter<'_>, s: &Stmt, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    match s {
        Stmt::Decl(r, None) => writeln!(f, "{pad}var {}: {}", r.name, r.ty),
        Stmt::Decl(r, Some(e)) => writeln!(f, "{pad}var {}: {} = {e}", r.name, r.ty),
        Stmt::Set(r, e) => writeln!(f, "{pad}{} = {e}", r.name),
        Stmt::Store(m, i, e) if e.ty().width == 1 => writeln!(f, "{pad}{m}[{i}] = {e}"),
        Stmt::Store(m, i, e) => writeln!(f, "{pad}{m}[{i} .. +{}] = {e}", e.ty().width),
        Stmt::Atomic(Update::Combine(op, _), m, i, e) => writeln!(f, "{pad}{m}[{i}] {op:?}= {e}"),
        Stmt::Atomic(Update::Read(r), m, i, _) => writeln!(f, "{pad}{} = atomic {m}[{i}]", r.name),
        Stmt::Atomic(Update::Swap(r), m, i, e) => {
            writeln!(f, "{pad}{m}[{i}] = {e} if it is {}", r.name)
        }
        Stmt::Loop { kind, var, lo, hi, body } => {
            writeln!(f, "{pad}{kind} {} in {lo} .. {hi} {{", var.name)?;
            block(f, body, depth + 1)?;
            writeln!(f, "{pad}}}")
        }
        Stmt::If(g, a, b) => branches(f, &format!("{g}"), a, b, depth),
        Stmt::Branch(e, a, b) => branches(f, &format!("{e}"), a, b, depth),
        Stmt::While(head, c, body) => {
            writeln!(f, "{pad}loop {{")?;
            block(f, head, depth + 1)?;
            writeln!(f, "{pad}  while {c}")?;
            block(f, body, depth + 1)?;
            writeln!(f, "{pad}}}")
        }
        Stmt::Once(b) => {
            writeln!(f, "{pad}once {{")?;
            block(f, b, depth + 1)?;
            writeln!(f, "{pad}}}")
        }
        Stmt::Barrier { scope, local, global } => writeln!(
            f,
            "{pad}barrier{}{}{}",
            if *scope == Scope::Warp { " of warps" } else { "" },
            if *local { " local" } else { "" },
            if *global { " global" } else { "" }
        ),
    }
}

fn branches(f: &mut Formatter<'_>, c: &str, a: &Block, b: &Block, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    writeln!(f, "{pad}if {c} {{")?;
    block(f, a, depth + 1)?;
    if !b.is_empty() {
        writeln!(f, "{pad}}} else {{")?;
        block(f, b, depth + 1)?;
    }
    writeln!(f, "{pad}}}")
}

impl Display for LoopKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LoopKind::Seq => f.write_str("for"),
            LoopKind::Glb(d) => write!(f, "global{d}"),
            LoopKind::Wrg(d) => write!(f, "group{d}"),
            LoopKind::Lcl(d) => write!(f, "local{d}"),
            LoopKind::Warp => f.write_str("warps"),
            LoopKind::Lane => f.write_str("lanes"),
        }
    }
}

impl Display for MemArray {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}]{}", self.name, self.len, self.scalar)
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} global {:?} group {:?} {{", self.name, self.global, self.group)?;
        for (i, a) in self.locals.iter().enumerate() {
            writeln!(f, "  local{i} = {a}")?;
        }
        for (i, a) in self.privates.iter().enumerate() {
            writeln!(f, "  private{i} = {a}")?;
        }
        block(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, b) in self.buffers.iter().enumerate() {
            let role = match &b.role {
                BufferRole::Input(p, c) => format!("input {p}.{c}"),
                BufferRole::Temp => "temp".to_owned(),
                BufferRole::Output(c) => format!("output {c}"),
            };
            writeln!(f, "global{i} = {} ({role})", b.array)?;
        }
        for (i, s) in self.scalars.iter().enumerate() {
            writeln!(f, "arg{i} = {}: {}", s.name, s.scalar)?;
        }
        if self.has_loops() {
            for c in &self.control {
                writeln!(f, "host: {c:?}")?;
            }
        }
        self.kernels.iter().try_for_each(|k| write!(f, "{k}"))
    }
}

impl Display for Atom {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Var(v) => f.write_str(&v.name),
            Atom::Div(x, k) => write!(f, "({x}) / {k}"),
            Atom::Mod(x, k) => write!(f, "({x}) % {k}"),
            Atom::Min(x, y) => write!(f, "min({x}, {y})"),
            Atom::Max(x, y) => write!(f, "max({x}, {y})"),
            Atom::Data(d) => write!(f, "{}", d.value),
        }
    }
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut first = true;
        // Print positive terms first: `n - i` instead of `-i + n`.
        let positive = self.terms.iter().filter(|(_, c)| *c > 0);
        let negative = self.terms.iter().filter(|(_, c)| *c < 0);
        if self.constant > 0 && self.terms.coefficients().all(|c| c < 0) {
            write!(f, "{}", self.constant)?;
            first = false;
        }
        for (a, c) in positive.chain(negative) {
            f.write_str(match (first, c < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            })?;
            match (c.unsigned_abs(), a) {
                (1, Atom::Div(..) | Atom::Mod(..)) => write!(f, "({a})")?,
                (1, _) => write!(f, "{a}")?,
                (k, Atom::Var(_)) => write!(f, "{k} * {a}")?,
                (k, _) => write!(f, "{k} * ({a})")?,
            }
            first = false;
        }
        match (first, self.constant) {
            (true, c) => write!(f, "{c}"),
            (false, c) if c > 0 && !self.terms.coefficients().all(|c| c < 0) => write!(f, " + {c}"),
            (false, c) if c < 0 => write!(f, " - {}", c.unsigned_abs()),
            (false, _) => Ok(()),
        }
    }
}
