//! Instances of a rule: values for its variables, an input, and the two sides for these values.

use super::meaning::other_order;
use super::sizes::Sizes;
use crate::calculus::eval::{self, Inputs};
use crate::calculus::sample::{self, Operator, Rng, Style, Wanted};
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{Op, ReduceKind, ScanKind, Term, TypeError};
use crate::calculus::ty::{FnTy, Ty};
use crate::calculus::value::{Tolerance, Value, compare_values};
use crate::lang::types::ScalarType;
use crate::rules::{Condition, Facts, Law, Rule};
use indexmap::IndexMap;
use rand::RngExt;
use std::sync::Arc;

/// Most elements of any value in an instance.
const ELEMENTS: u64 = 1 << 14;

/// How reductions are ordered in an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Operators are associative, and reductions group in any way.
    AnyOrder,
    /// Operators need only have a neutral element, and reductions fold from the left. A rule that claims to
    /// keep every bit must hold here too.
    AsWritten,
}

/// Values for a rule's variables.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub sizes: SizeEnv,
    pub types: IndexMap<Arc<str>, Ty>,
    pub functions: IndexMap<Arc<str>, Term>,
    /// The seed of every order that is left open.
    pub order: u64,
    pub reading: Reading,
    /// Whether floats are rounded after every operation, as on a device, and every bit counts.
    pub bits: bool,
    pub input: Value,
}

/// How large an instance may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The longest dimension, if the sides allow that.
    pub most: u64,
    /// Whether to use only integers and the simplest functions, if conditions allow that.
    pub plain: bool,
}

/// The requirements on a type variable.
#[derive(Clone, Copy, Debug, Default)]
struct TypeNeed {
    /// Scalars, or pairs of them.
    scalar: bool,
    /// Scalars, vectors, or pairs of them.
    element: bool,
    /// An integer.
    index: bool,
}

/// The requirements on a function variable.
#[derive(Clone, Debug)]
struct FunctionNeed {
    ty: FnTy,
    vectorisable: bool,
    lanewise: bool,
    computes: bool,
    commutative: bool,
}

/// A reduction of the left side, with its operator and neutral element as written.
struct Reduction {
    op: Term,
    z: Term,
    commutative: bool,
}

/// The requirements on all variables of a rule.
pub(super) struct Plan<'a> {
    pub rule: &'a Rule,
    sizes: Sizes,
    types: IndexMap<Arc<str>, TypeNeed>,
    functions: IndexMap<Arc<str>, FunctionNeed>,
    reductions: Vec<Reduction>,
    /// Whether a side leaves the order of a reduction open.
    open: bool,
}

/// The two sides of an instance.
pub(super) struct Sides {
    pub left: Term,
    /// The right side, or why there is none.
    pub right: Result<Term, String>,
}

/// The result of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The instance does not count: the left side has no value.
    Void,
    /// Both sides give the same value.
    Same,
    /// The result of the left side, and that of the right side or why it has none.
    Differs(Value, Result<Value, String>),
}

fn type_variables(t: &Ty, out: &mut Vec<Arc<str>>) {
    match t {
        Ty::Unit | Ty::Scalar(_) => {}
        Ty::Meta(m) => out.push(m.clone()),
        Ty::Vector(_, t) | Ty::Array(_, t) => type_variables(t, out),
        Ty::Pair(a, b) => {
            type_variables(a, out);
            type_variables(b, out);
        }
    }
}

fn inside_vectors(t: &Ty, out: &mut Vec<Arc<str>>) {
    match t {
        Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => {}
        Ty::Vector(_, t) => type_variables(t, out),
        Ty::Array(_, t) => inside_vectors(t, out),
        Ty::Pair(a, b) => {
            inside_vectors(a, out);
            inside_vectors(b, out);
        }
    }
}

/// Whether a term leaves the order of a reduction open.
fn leaves_order_open(t: &Term) -> bool {
    let mut open = false;
    let long = t.unpacked();
    long.as_ref().unwrap_or(t).visit(&mut |t| {
        open |= matches!(
            t.op(),
            Op::Reduce(ReduceKind::Assoc | ReduceKind::Comm)
                | Op::ReducePart
                | Op::ReduceLcl
                | Op::Scan(ScanKind::Assoc | ScanKind::Exclusive)
                | Op::ScanLcl(_)
                | Op::Histogram
        );
    });
    open
}

/// Returns the function variables of a term with their types.
fn variables(t: &Term) -> Vec<(Arc<str>, FnTy)> {
    let mut out = vec![];
    t.visit(&mut |t| {
        if let Op::Meta(m) = t.op() {
            out.push((m.clone(), t.ty().clone()));
        }
    });
    out
}

impl<'a> Plan<'a> {
    pub(super) fn of(rule: &'a Rule) -> Plan<'a> {
        let (mut types, mut functions) = (IndexMap::new(), IndexMap::new());
        let (mut scalars, mut indices, mut vectorised) = (vec![], vec![], vec![]);
        let mut reductions = vec![];
        rule.lhs.visit(&mut |t| {
            let mut mentioned = vec![];
            for ty in t.tys().iter().chain([&t.ty().dom, &t.ty().cod]) {
                type_variables(ty, &mut mentioned);
                inside_vectors(ty, &mut scalars);
            }
            for m in mentioned {
                types.entry(m).or_insert_with(TypeNeed::default);
            }
            let comm =
                matches!(t.op(), Op::Reduce(ReduceKind::Comm) | Op::ReduceLcl | Op::Histogram);
            match t.op() {
                Op::Meta(m) => {
                    let need = FunctionNeed {
                        ty: t.ty().clone(),
                        vectorisable: false,
                        lanewise: false,
                        computes: false,
                        commutative: false,
                    };
                    functions.insert(m.clone(), need);
                }
                Op::AsVector | Op::AsScalar | Op::Splat => {
                    type_variables(&t.tys()[0], &mut scalars);
                }
                Op::Vectorize => vectorised.extend(variables(&t.args()[0])),
                Op::Gather | Op::Scatter | Op::Index | Op::Iota => {
                    type_variables(&t.tys()[1], &mut indices);
                }
                Op::CountingSort => type_variables(&t.tys()[0], &mut indices),
                Op::Reduce(ReduceKind::Assoc | ReduceKind::Comm)
                | Op::ReducePart
                | Op::ReduceLcl
                | Op::Scan(ScanKind::Assoc | ScanKind::Exclusive)
                | Op::ScanLcl(_)
                | Op::Histogram => {
                    if *t.op() == Op::Histogram {
                        type_variables(&t.tys()[0], &mut indices);
                    }
                    let (op, z) = (t.args()[0].clone(), t.args()[1].clone());
                    reductions.push(Reduction { op, z, commutative: comm });
                }
                _ => {}
            }
        });
        let mut elements = vec![];
        for c in &rule.when {
            match c {
                Condition::Scalar(a) => scalars.push(a.as_str().into()),
                Condition::Element(a) => elements.push(Arc::from(a.as_str())),
                Condition::Vectorisable(f) => {
                    if let Some(need) = functions.get(f.as_str()) {
                        vectorised.push((f.as_str().into(), need.ty.clone()));
                    }
                }
                Condition::Lanewise(f) => {
                    if let Some(need) = functions.get_mut(f.as_str()) {
                        need.lanewise = true;
                        type_variables(&need.ty.cod, &mut scalars);
                    }
                }
                Condition::Computes(f) => {
                    if let Some(need) = functions.get_mut(f.as_str()) {
                        need.computes = true;
                    }
                }
                Condition::Commutative(f) => {
                    if let Some(need) = functions.get_mut(f.as_str()) {
                        need.commutative = true;
                    }
                }
                Condition::Tileable(..)
                | Condition::Whole(_)
                | Condition::Dimension(_)
                | Condition::Tile(_)
                | Condition::Differ(..)
                | Condition::Divides(..)
                | Condition::Rounds(..)
                | Condition::UpTo(..)
                | Condition::From(..)
                | Condition::Small(_)
                | Condition::Elementwise(_)
                | Condition::Rearranges(_)
                | Condition::Tiles(_)
                | Condition::Scans(_)
                | Condition::Cheap(_) => {}
            }
        }
        for (f, ty) in vectorised {
            if let Some(need) = functions.get_mut(&f) {
                need.vectorisable = true;
            }
            type_variables(&ty.dom, &mut scalars);
            type_variables(&ty.cod, &mut scalars);
        }
        let mut need = |names: Vec<Arc<str>>, set: fn(&mut TypeNeed)| {
            for m in names {
                set(types.entry(m).or_insert_with(TypeNeed::default));
            }
        };
        need(scalars, |n| n.scalar = true);
        need(elements, |n| n.element = true);
        need(indices, |n| n.index = true);
        let open = leaves_order_open(&rule.lhs) || leaves_order_open(&rule.rhs);
        Plan { rule, sizes: Sizes::of(rule), types, functions, reductions, open }
    }

    /// Whether instances may fold reductions as written.
    fn has_readings(&self) -> bool {
        self.rule.law == Law::Exact && !self.reductions.is_empty()
    }

    /// Returns a random instance; `None` when this attempt failed.
    pub(super) fn draw(&self, rng: &mut Rng, scale: Scale) -> Option<Instance> {
        let sizes = self.sizes.draw(rng, scale.most)?;
        let written = self.has_readings() && rng.random();
        let reading = if written { Reading::AsWritten } else { Reading::AnyOrder };
        let fixed_order = written || !self.open;
        let types: IndexMap<Arc<str>, Ty> = self
            .types
            .iter()
            .map(|(m, need)| (m.clone(), any_type(rng, *need, scale.plain, written)))
            .collect();
        let mut out = Instance {
            sizes,
            types,
            functions: IndexMap::new(),
            order: rng.random(),
            reading,
            bits: self.rule.law == Law::Exact && fixed_order,
            input: Value::unit(),
        };
        out.functions = self.functions(rng, &out, scale)?;
        let left = self.sides(&out)?.left;
        let shape = eval::shape(&left.ty().dom, &SizeEnv::default()).ok()?;
        use Style::{Count, Ends, Extreme, Few, Near, Real, Small, Special, Wild};
        let styles = match self.rule.law {
            Law::Approx => &[Real, Near, Small, Few][..],
            Law::Exact if out.bits => &[Count, Small, Few, Extreme, Real, Wild, Wild, Ends],
            // Near a jump of a function, a small rounding error becomes a large one.
            Law::Reassoc if !self.open && self.functions.is_empty() => {
                &[Count, Small, Few, Extreme, Real, Special]
            }
            Law::Reassoc if !self.open => &[Count, Small, Few, Extreme, Special],
            // Sums and extremes of whole numbers are the same in every order.
            Law::Exact | Law::Reassoc => &[Count, Small, Few, Extreme],
        };
        let style = if scale.plain { Count } else { styles[rng.random_range(0..styles.len())] };
        out.input = sample::value(rng, &shape, style);
        Some(out)
    }

    /// Returns the same instance with other values for tunables.
    pub(super) fn retiled(&self, rng: &mut Rng, i: &Instance) -> Option<Instance> {
        Some(Instance { sizes: self.sizes.tiled(rng, &i.sizes)?, ..i.clone() })
    }

    /// Returns a function for every variable: operators with the laws that their reductions promise, other
    /// functions at random.
    fn functions(
        &self,
        rng: &mut Rng,
        so_far: &Instance,
        scale: Scale,
    ) -> Option<IndexMap<Arc<str>, Term>> {
        let mut out: IndexMap<Arc<str>, Term> = IndexMap::new();
        let ty = |t: &Ty| concrete_type(t, &so_far.sizes, &so_far.types).ok();
        for r in &self.reductions {
            let pair = paired(&r.op, &r.z);
            let named = pair.op.and_then(|f| self.functions.get_key_value(&f));
            let commutative = r.commutative || named.is_some_and(|(_, n)| n.commutative);
            let Some(element) = pair.element.as_ref().and_then(ty) else { continue };
            let known = named.and_then(|(f, _)| out.get(f)).cloned();
            let unit_known = pair.z.as_ref().is_some_and(|z| out.contains_key(z));
            if known.is_some() && (unit_known || pair.z.is_none()) {
                continue;
            }
            let Operator { op, unit } = match (&known, so_far.reading) {
                // The operator occurs elsewhere on the left side too, so it has the same neutral element.
                (Some(op), _) => neutral(op, &element)?,
                (None, Reading::AsWritten) => sample::unital(rng, &element, commutative)?,
                (None, Reading::AnyOrder) if scale.plain => {
                    let mut simple = sample::simple_lawful(&element, commutative);
                    (!simple.is_empty())
                        .then(|| simple.swap_remove(rng.random_range(0..simple.len())))?
                }
                (None, Reading::AnyOrder) => sample::lawful(rng, &element, commutative).ok()?,
            };
            if let Some((f, _)) = named {
                out.insert(f.clone(), op);
            }
            if let Some(z) = pair.z {
                out.insert(z, unit);
            }
        }
        for (f, need) in &self.functions {
            if out.contains_key(f) {
                continue;
            }
            let ty = FnTy::new(ty(&need.ty.dom)?, ty(&need.ty.cod)?);
            let made = (0..8).find_map(|_| {
                let fuel = if scale.plain { 0 } else { rng.random_range(0..4) };
                let wanted = Wanted { vectorisable: need.vectorisable, fuel };
                let made = if need.commutative {
                    sample::lawful(rng, &ty.cod, true).ok().map(|o| o.op).filter(|t| *t.ty() == ty)
                } else {
                    sample::function(rng, &ty, wanted).ok()
                };
                made.filter(|t| {
                    let facts = Facts::of(t);
                    (!need.computes || !facts.view)
                        && (!need.vectorisable || facts.vectorisable)
                        && (!need.lanewise || facts.lanewise && facts.scalar)
                })
            });
            out.insert(f.clone(), made?);
        }
        Some(out)
    }

    /// Returns the sides of an instance; `None` when the left side is not well-formed or its operators break
    /// their promises.
    pub(super) fn sides(&self, i: &Instance) -> Option<Sides> {
        let left = i.side(&self.rule.lhs).ok()?;
        if illegal(&left).is_some() || elements(&left) > ELEMENTS || !self.keeps_promises(i) {
            return None;
        }
        let right = match i.side(&self.rule.rhs) {
            Ok(right) if elements(&right) > ELEMENTS => return None,
            Ok(right) => illegal(&right).map_or(Ok(right), Err),
            Err(TypeError(why)) => Err(match self.sizes.uneven(&i.sizes) {
                Some(size) => format!("{size} is no whole number"),
                None => format!("the term is ill-typed: {why}"),
            }),
        };
        Some(Sides { left, right })
    }

    /// Tests the operators of the left side's reductions on a few values: an operator that was not drawn
    /// together with its neutral element need not fit that element.
    fn keeps_promises(&self, i: &Instance) -> bool {
        self.reductions.iter().all(|r| {
            let (Ok(op), Ok(z)) = (i.side(&r.op), i.side(&r.z)) else { return false };
            let run =
                |f: &Term, x: &Value| eval::apply(f, &SizeEnv::default(), &Inputs::new(), x).ok();
            let both = |a: &Value, b: &Value| run(&op, &Value::tuple([a.clone(), b.clone()]));
            let Ok(shape) = eval::shape(&z.ty().cod, &SizeEnv::default()) else { return false };
            let Some(unit) = run(&z, &Value::unit()) else { return false };
            let mut rng = sample::rng(0, "promises", 0);
            [Style::Small, Style::Extreme, Style::Few, Style::Count].into_iter().all(|style| {
                let [a, b, c] = [(); 3].map(|()| sample::value(&mut rng, &shape, style));
                let same = |x: Option<Value>, y: Option<Value>| x.is_some() && x == y;
                same(both(&unit, &a), Some(a.clone()))
                    && same(both(&a, &unit), Some(a.clone()))
                    && (!r.commutative || same(both(&a, &b), both(&b, &a)))
                    && (i.reading == Reading::AsWritten
                        || same(
                            both(&a, &b).and_then(|ab| both(&ab, &c)),
                            both(&b, &c).and_then(|bc| both(&a, &bc)),
                        ))
            })
        })
    }

    /// Evaluates both sides.
    pub(super) fn judge(&self, i: &Instance) -> Verdict {
        let Some(Sides { left, right }) = self.sides(i) else { return Verdict::Void };
        let Ok(left) = i.value(&left, "left") else { return Verdict::Void };
        let right =
            right.and_then(|r| i.value(&r, "right").map_err(|e| format!("it has none: {e}")));
        let same = match &right {
            Ok(right) => match self.rule.law {
                Law::Exact if i.bits => left.same_bits(right),
                Law::Exact => left == *right,
                Law::Reassoc if self.open => left == *right,
                Law::Reassoc | Law::Approx => {
                    compare_values(&left, right, |t| Tolerance::of(t, 64)).ok
                }
            },
            Err(_) => false,
        };
        if same { Verdict::Same } else { Verdict::Differs(left, right) }
    }
}

impl Instance {
    fn side(&self, t: &Term) -> Result<Term, TypeError> {
        concrete(t, self)
    }

    /// Returns the value of a side in this instance's order.
    pub(super) fn value(&self, side: &Term, salt: &str) -> Result<Value, String> {
        let regroup = self.reading == Reading::AnyOrder;
        let (term, inputs) = other_order(side, self.order, salt, regroup).map_err(|e| e.0)?;
        self.run(&term, &inputs).map_err(|e| e.to_string())
    }

    fn run(&self, term: &Term, inputs: &Inputs) -> crate::diag::Result<Value> {
        let apply = if self.bits { eval::apply_rounded } else { eval::apply };
        apply(term, &SizeEnv::default(), inputs, &self.input)
    }

    /// Returns the value of a side with reductions folded from the left.
    pub(super) fn folded(&self, side: &Term) -> Option<Value> {
        let (term, inputs) = other_order(side, self.order, "", false).ok()?;
        self.run(&term, &inputs).ok()
    }
}

/// The variables that stand for the operator and the neutral element of a reduction, and the type of its
/// elements.
struct Paired {
    op: Option<Arc<str>>,
    z: Option<Arc<str>>,
    element: Option<Ty>,
}

/// Returns the variables of a reduction, also inside component-wise operators: `vectorize w op` with `splat w
/// . z`, and `map op . zip` with `replicate n . z`.
fn paired(op: &Term, z: &Term) -> Paired {
    let name = |t: &Term| match t.op() {
        Op::Meta(m) => Some(m.clone()),
        _ => None,
    };
    let after = |t: &Term, is: fn(&Op) -> bool| match t.chain().as_slice() {
        [outer, rest] if is(outer.op()) => Some(rest.clone()),
        _ => None,
    };
    let lanes = match (op.op(), after(z, |o| *o == Op::Splat)) {
        (Op::Vectorize, Some(z)) => Some((op.args()[0].clone(), z)),
        _ => None,
    };
    let rows = || match (op.chain().as_slice(), after(z, |o| *o == Op::Replicate)) {
        ([map, zip], Some(z)) if matches!(map.op(), Op::Map(_)) && *zip.op() == Op::Zip => {
            Some((map.args()[0].clone(), z))
        }
        _ => None,
    };
    match lanes.or_else(rows) {
        Some((op, z)) => paired(&op, &z),
        None => {
            let (f, g) = (name(op), name(z));
            let element = (f.is_some() || g.is_some()).then(|| z.ty().cod.clone());
            Paired { op: f, z: g, element }
        }
    }
}

/// Returns the operator with its neutral element, sought among those of simple operators.
fn neutral(op: &Term, element: &Ty) -> Option<Operator> {
    let unit = sample::simple_lawful(element, false).into_iter().find_map(|o| {
        let z = eval::apply(&o.unit, &SizeEnv::default(), &Inputs::new(), &Value::unit()).ok()?;
        let shape = eval::shape(element, &SizeEnv::default()).ok()?;
        let a = sample::value(&mut sample::rng(0, "neutral", 0), &shape, Style::Small);
        let both = Value::tuple([z, a.clone()]);
        let got = eval::apply(op, &SizeEnv::default(), &Inputs::new(), &both).ok()?;
        (got == a).then_some(o.unit)
    });
    Some(Operator { op: op.clone(), unit: unit? })
}

fn any_type(rng: &mut Rng, need: TypeNeed, plain: bool, numbers: bool) -> Ty {
    use ScalarType::{Bool, F32, F64, I32, I64};
    let scalars: &[ScalarType] = match (need.index, plain, numbers) {
        (true, _, _) => &[I32, I64],
        (_, true, _) => &[I32],
        (_, _, true) => &[I32, I32, I64, F32, F32, F64],
        _ => &[I32, I32, I64, F32, F32, F64, Bool],
    };
    let scalar = |rng: &mut Rng| Ty::Scalar(scalars[rng.random_range(0..scalars.len())]);
    if need.index || plain {
        return scalar(rng);
    }
    match rng.random_range(0..10) {
        0..5 => scalar(rng),
        5..7 => Ty::pair(&scalar(rng), &scalar(rng)),
        7 => {
            let inner = Ty::pair(&scalar(rng), &scalar(rng));
            Ty::pair(&scalar(rng), &inner)
        }
        8 if !need.scalar => Ty::Vector(Size::constant(2), scalar(rng).into()),
        9 if !need.scalar && !need.element => {
            let row = if rng.random() { scalar(rng) } else { Ty::pair(&scalar(rng), &scalar(rng)) };
            Ty::array(&Size::constant(rng.random_range(1..4)), &row)
        }
        _ => scalar(rng),
    }
}

fn concrete_size(s: &Size, env: &SizeEnv) -> Result<Size, TypeError> {
    s.eval(env).map(Size::constant).map_err(|e| TypeError(e.to_string()))
}

/// Returns the type with numbers for its sizes and types for its variables.
pub(super) fn concrete_type(
    t: &Ty,
    env: &SizeEnv,
    types: &IndexMap<Arc<str>, Ty>,
) -> Result<Ty, TypeError> {
    let inner = |t: &Ty| concrete_type(t, env, types);
    Ok(match t {
        Ty::Unit | Ty::Scalar(_) => t.clone(),
        Ty::Meta(m) => {
            types.get(m).cloned().ok_or_else(|| TypeError(format!("nothing determines `{m}`")))?
        }
        Ty::Pair(a, b) => Ty::pair(&inner(a)?, &inner(b)?),
        Ty::Array(n, t) => Ty::array(&concrete_size(n, env)?, &inner(t)?),
        Ty::Vector(w, t) => {
            let t = inner(t)?;
            Ty::vector(&concrete_size(w, env)?, &t)
                .ok_or_else(|| TypeError(format!("`{t}` has no vector form")))?
        }
    })
}

fn concrete(t: &Term, i: &Instance) -> Result<Term, TypeError> {
    if let Op::Meta(m) = t.op() {
        let f = i.functions.get(m).ok_or_else(|| TypeError(format!("nothing determines `{m}`")))?;
        let cod = concrete_type(&t.ty().cod, &i.sizes, &i.types)?;
        let dom = concrete_type(&t.ty().dom, &i.sizes, &i.types)?;
        let want = FnTy::new(dom, cod);
        return if *f.ty() == want {
            Ok(f.clone())
        } else {
            Err(TypeError(format!("`{m}` is {}, not {want}", f.ty())))
        };
    }
    let sizes: Result<Vec<Size>, TypeError> =
        t.sizes().iter().map(|s| concrete_size(s, &i.sizes)).collect();
    let tys: Result<Vec<Ty>, TypeError> =
        t.tys().iter().map(|t| concrete_type(t, &i.sizes, &i.types)).collect();
    let args: Result<Vec<Term>, TypeError> = t.args().iter().map(|a| concrete(a, i)).collect();
    Term::new(t.op().clone(), sizes?, tys?, args?)
}

/// Whether a function with these facts has a vector form.
fn has_lanes(f: Facts) -> bool {
    f.vectorisable || f.lanewise && f.scalar
}

/// Returns why no program can contain the term, if so: the vector form of a function that has none, or
/// padding to a smaller length or of nothing. Short forms are expanded for this.
fn illegal(t: &Term) -> Option<String> {
    let mut found = None;
    let long = match t.unpacked() {
        Ok(long) => long,
        Err(TypeError(why)) => return Some(why),
    };
    long.visit(&mut |t| {
        let why = match (t.op(), t.sizes()) {
            (Op::Vectorize, _) if !has_lanes(Facts::of(&t.args()[0])) => {
                Some(format!("`{}` has no vector form", t.args()[0]))
            }
            (Op::PadTo | Op::PadLast | Op::Mask, [n, r]) => {
                match (n.as_constant(), r.as_constant()) {
                    (Some(n), Some(r)) if r < n || n == 0 && r > 0 => {
                        Some(format!("{n} elements cannot be padded to {r}"))
                    }
                    _ => None,
                }
            }
            (Op::Pad(_), [l, n, m]) => match (l.as_constant(), n.as_constant(), m.as_constant()) {
                (Some(l), Some(n), Some(m)) if m < l + n || n == 0 && m > 0 => {
                    Some(format!("{n} elements cannot be padded to {m} with {l} in front"))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(why) = why {
            found.get_or_insert(why);
        }
    });
    found
}

/// Returns the number of elements of the largest value in a term.
fn elements(t: &Term) -> u64 {
    let of = |t: &Ty| {
        t.components().iter().fold(0u64, |sum, (dims, _)| {
            let n = dims.iter().fold(1u64, |n, d| n.saturating_mul(d.as_constant().unwrap_or(1)));
            sum.saturating_add(n)
        })
    };
    let mut most = 0;
    t.visit(&mut |t| most = most.max(of(&t.ty().dom)).max(of(&t.ty().cod)));
    most
}

/// Returns the value of a rule's size variable in an instance.
pub(super) fn size_of(i: &Instance, name: &str) -> Option<u64> {
    i.sizes.get(&Sym::Meta(name.into())).copied()
}
