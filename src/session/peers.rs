//! Reads hand-written kernels that are timed beside the generated kernels of a program.
//!
//! A peer file is OpenCL C with comments that describe how each kernel is launched:
//!
//! ```text
//! // peer: NAME for ENTRY
//! // launch: KERNEL global=SIZE local=SIZE args=xs,out
//! ```
//!
//! Sizes are products and quotients of numbers, the entry's size parameters and `units` (compute units). Arguments are
//! parameters of the entry, `out` (its result), or `tmp:TYPE:SIZE` (an array between kernels); `xs.1` and `out.1` are
//! components of tuples, counted from 0. `global` and `local` have up to three sizes, separated by commas, one for
//! each dimension. Numbers of work-items are rounded up to whole groups. Several `launch` lines run one after the
//! other. `// define: NAME=SIZE` defines a preprocessor symbol.

use super::program::{Program, Sizes, components};
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use crate::lang::types::{ScalarType, Type};
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role, Scalar};
use std::sync::Arc;

/// One hand-written implementation.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its host plan.
    pub plan: Arc<HostPlan>,
}

/// Returns the peers in a file for a program's entry, at the given sizes.
///
/// # Errors
/// When a comment is malformed, with its place.
pub fn peers(
    source: &Arc<Source>,
    program: &Program,
    sizes: &Sizes,
    compute_units: u32,
) -> Result<Vec<Peer>> {
    let mut out: Vec<Peer> = vec![];
    let mut current: Option<(String, HostPlan)> = None;
    let mut offset = 0;
    for line in source.text.split_inclusive('\n') {
        let span = Span::new(offset, offset + line.trim_end().len());
        offset += line.len();
        let Some(comment) = line.trim().strip_prefix("//").map(str::trim) else { continue };
        let fail =
            |text: String| Diagnostic::error(Code::Usage, text).at(source, span, "in this line");
        let value = |text: &str| {
            let known = |name: &str| match name {
                "units" => Some(u64::from(compute_units.max(1))),
                _ => sizes.get(name).copied(),
            };
            size(text, &known).ok_or_else(|| fail(format!("`{text}` is no size here")))
        };
        if let Some(rest) = comment.strip_prefix("peer:") {
            finish(&mut out, current.take());
            let Some((name, entry)) = rest.rsplit_once(" for ") else {
                return Err(fail("a peer needs `NAME for ENTRY`".into()).into());
            };
            if entry.trim() == program.entry.name {
                current = Some((name.trim().to_owned(), empty(source, program, sizes)?));
            }
        } else if let (Some(rest), Some((_, plan))) =
            (comment.strip_prefix("define:"), &mut current)
        {
            for word in rest.split_whitespace() {
                let Some((name, text)) = word.split_once('=') else {
                    return Err(fail(format!("`{word}` is no `NAME=SIZE`")).into());
                };
                plan.options.push_str(&format!(" -D {name}={}", value(text)?));
            }
        } else if let (Some(rest), Some((_, plan))) =
            (comment.strip_prefix("launch:"), &mut current)
        {
            let mut words = rest.split_whitespace();
            let Some(kernel) = words.next() else {
                return Err(fail("a launch needs a kernel's name".into()).into());
            };
            let mut launch =
                Launch { kernel: kernel.to_owned(), args: vec![], global: [1; 3], local: [1; 3] };
            for word in words {
                match word.split_once('=') {
                    Some((range @ ("global" | "local"), text)) => {
                        let sizes = text
                            .split(',')
                            .map(&value)
                            .collect::<std::result::Result<Vec<_>, _>>()?;
                        if sizes.len() > 3 {
                            return Err(fail(format!("`{word}` has more than 3 sizes")).into());
                        }
                        let of =
                            if range == "global" { &mut launch.global } else { &mut launch.local };
                        of.iter_mut().zip(sizes).for_each(|(d, n)| *d = index(n));
                    }
                    Some(("args", list)) => {
                        for name in list.split(',') {
                            let arg = argument(plan, name, &value)?;
                            let unknown = || fail(format!("`{name}` is no argument here"));
                            launch.args.push(arg.ok_or_else(unknown)?);
                        }
                    }
                    _ => return Err(fail(format!("`{word}` is not understood")).into()),
                }
            }
            for (n, group) in launch.global.iter_mut().zip(launch.local) {
                *n = n.div_ceil(group.max(1)).saturating_mul(group.max(1));
            }
            plan.launches.push(launch);
        }
    }
    finish(&mut out, current);
    Ok(out)
}

fn finish(out: &mut Vec<Peer>, current: Option<(String, HostPlan)>) {
    if let Some((name, plan)) = current.filter(|(_, plan)| !plan.launches.is_empty()) {
        out.push(Peer { name, plan: Arc::new(plan) });
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns a host plan with the entry's parameters and result, and without launches.
fn empty(source: &Arc<Source>, program: &Program, sizes: &Sizes) -> Result<HostPlan> {
    let mut plan = HostPlan {
        source: source.text.clone(),
        options: String::new(),
        buffers: vec![],
        scalars: vec![],
        launches: vec![],
        control: vec![],
        faults: vec![],
    };
    let length = |ty: &Type| -> Result<Vec<(ScalarType, Option<usize>)>> {
        let value = |n: &str| sizes.get(n).and_then(|&v| i64::try_from(v).ok());
        let mut out = vec![];
        for (scalar, dims) in components(ty) {
            let mut len = if dims.is_empty() { None } else { Some(1usize) };
            for dim in dims {
                let n = dim
                    .eval(&value)
                    .map_err(|e| Diagnostic::error(Code::SizeRange, format!("`{dim}`: {e}")))?;
                len = len.map(|l| l.saturating_mul(index(n.unsigned_abs())));
            }
            out.push((scalar, len));
        }
        Ok(out)
    };
    for p in &program.entry.params {
        for (component, (elem, len)) in length(&p.ty)?.into_iter().enumerate() {
            match len {
                None => plan.scalars.push(Scalar { param: p.name.clone(), component, ty: elem }),
                Some(len) => plan.buffers.push(Buffer {
                    name: p.name.clone(),
                    elem,
                    len,
                    role: Role::Input(p.name.clone(), component),
                }),
            }
        }
    }
    for (k, (elem, len)) in length(&program.entry.body.ty)?.into_iter().enumerate() {
        let name = "out".to_owned();
        plan.buffers.push(Buffer { name, elem, len: len.unwrap_or(1), role: Role::Output(k) });
    }
    Ok(plan)
}

/// Finds an argument by name (`NAME.K` for component `K` of tuples). Adds a buffer for `tmp:TYPE:SIZE` if it is new.
fn argument(
    plan: &mut HostPlan,
    name: &str,
    value: &impl Fn(&str) -> std::result::Result<u64, Diagnostic>,
) -> Result<Option<Arg>> {
    let (whole, component) = match name.rsplit_once('.') {
        Some((whole, k)) => (whole, k.parse().ok()),
        None => (name, Some(0)),
    };
    let scalar = |s: &Scalar| s.param == whole && Some(s.component) == component;
    if let Some(i) = plan.scalars.iter().position(scalar) {
        return Ok(Some(Arg::Scalar(i)));
    }
    let buffer = |b: &Buffer| match &b.role {
        Role::Input(param, k) => param == whole && Some(*k) == component,
        Role::Output(k) => whole == "out" && Some(*k) == component,
        Role::Temp => b.name == name,
        Role::Faults | Role::GoesOn | Role::Meeting => false,
    };
    if let Some(i) = plan.buffers.iter().position(buffer) {
        return Ok(Some(Arg::Buffer(i)));
    }
    let Some((ty, text)) = name.strip_prefix("tmp:").and_then(|r| r.split_once(':')) else {
        return Ok(None);
    };
    let Some(elem) = ScalarType::from_name(ty) else { return Ok(None) };
    let len = index(value(text)?);
    plan.buffers.push(Buffer { name: name.to_owned(), elem, len, role: Role::Temp });
    Ok(Some(Arg::Buffer(plan.buffers.len() - 1)))
}

/// Evaluates products and quotients of numbers and names, from left to right.
fn size(text: &str, known: &impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let mut value: u64 = 1;
    let mut divide = false;
    let mut rest = text;
    loop {
        let end = rest.find(['*', '/']).unwrap_or(rest.len());
        let factor = rest[..end].parse().ok().or_else(|| known(&rest[..end]))?;
        value = if divide { value.checked_div(factor)? } else { value.checked_mul(factor)? };
        match rest.as_bytes().get(end) {
            Some(c) => divide = *c == b'/',
            None => return Some(value),
        }
        rest = &rest[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_have_components() {
        let text = "entry f [n] (c: (f32, i32)) (xs: [n](f32, i32)) : ([n]f32, [n]i32) = unzip xs";
        let program =
            Program::check(&Source::new("p", text), None).expect("the program is well-typed");
        let sizes = Sizes::from([("n".to_owned(), 64)]);
        let read = |args: &str| {
            let text = format!("// peer: a for f\n// launch: k global=n args={args}\n");
            peers(&Source::new("k.cl", text), &program, &sizes, 2)
        };
        let found = read("xs,xs.1,out.0,out.1,c.1,c").expect("the peers fit the program");
        use Arg::{Buffer, Scalar};
        let want = [Buffer(0), Buffer(1), Buffer(2), Buffer(3), Scalar(1), Scalar(0)];
        assert_eq!(found[0].plan.launches[0].args, want);
        for wrong in ["xs.2", "out.2", "c.x", "ys"] {
            assert_eq!(read(wrong).unwrap_err().0[0].code, Code::Usage, "{wrong}");
        }
    }

    #[test]
    fn comments_say_how_to_launch() {
        let program = Source::new("p", "entry f [n] (c: f32) (xs: [n]f32) : [n]f32 = map (* c) xs");
        let program = Program::check(&program, None).expect("the program is well-typed");
        let sizes = Sizes::from([("n".to_owned(), 64)]);
        let text = "// peer: plain for f\n// define: N=n\n// launch: k global=n/2*units local=16 args=c,xs,out,tmp:f64:n/4\n\
                    kernel void k() {}\n// peer: other for g\n// launch: k global=1\n";
        let found = peers(&Source::new("k.cl", text), &program, &sizes, 2)
            .expect("the peers fit the program");
        assert_eq!(found.len(), 1);
        let plan = &found[0].plan;
        assert_eq!((plan.launches[0].global[0], plan.launches[0].local[0]), (64, 16));
        assert_eq!(plan.options, " -D N=64");
        assert_eq!((plan.buffers.len(), plan.buffers[2].len), (3, 16));
        let odd = "// peer: a for f\n// launch: k global=n,3 local=24,2\n";
        let found = peers(&Source::new("k.cl", odd), &program, &sizes, 2).expect("a peer");
        assert_eq!(found[0].plan.launches[0].global, [72, 4, 1]);
        let bad = Source::new("k.cl", "// peer: a for f\n// launch: k global=m\n");
        assert_eq!(peers(&bad, &program, &sizes, 2).unwrap_err().0[0].code, Code::Usage);
    }
}
