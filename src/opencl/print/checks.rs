//! Checks of values that depend on the data (indices, divisors and exponents), in OpenCL C.
//!
//! Each work-item records its findings in private variables: the greatest index (a negative one is great as an
//! unsigned number), or that something failed. It tests these variables once, at the end of the kernel, so that no
//! loop gets a branch and compilers vectorise loops as before. The first work-item that finds a failure writes it
//! to the faults buffer.

use super::types::c_type;
use crate::kernel::ir::{Check, ElemTy, Expr};
use crate::lang::types::ScalarType;
use crate::opencl::plan::{Fault, FaultKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Name of the parameter for the faults buffer.
pub(super) const FAULTS: &str = "checked_faults";

/// State shared by the kernels of a program.
#[derive(Default)]
pub(super) struct Shared {
    functions: RefCell<BTreeSet<String>>,
    faults: RefCell<Vec<Fault>>,
}

/// The checks of one kernel.
pub(super) struct Checks<'a> {
    shared: &'a Shared,
    /// The checks made so far. Each has a variable.
    made: RefCell<Vec<Made>>,
    /// Registers that hold checked indices, with the number of the check.
    held: RefCell<BTreeMap<u32, usize>>,
}

struct Made {
    check: Check,
    /// Type of the index.
    ty: ScalarType,
    arrays: BTreeSet<String>,
}

/// Code before and after a kernel's body.
#[derive(Default)]
pub(super) struct Around {
    pub(super) before: String,
    pub(super) after: String,
}

impl Shared {
    /// Returns the functions that the kernels call, and the list of checks.
    pub(super) fn finish(self) -> (String, Vec<Fault>) {
        let functions = self.functions.into_inner();
        let report = if functions.is_empty() { "" } else { REPORT };
        (report.to_owned() + &functions.into_iter().collect::<String>(), self.faults.into_inner())
    }
}

const REPORT: &str = "
void checked_report(volatile global int* faults, int number, ulong index) {
    if (atomic_cmpxchg(faults, 0, number) == 0) {
        faults[1] = (int)index;
        faults[2] = (int)(index >> 32);
    }
}
";

impl<'a> Checks<'a> {
    pub(super) fn new(shared: &'a Shared) -> Checks<'a> {
        Checks { shared, made: RefCell::default(), held: RefCell::default() }
    }

    /// Returns the number of a check's variable. Equal checks share one.
    fn number(&self, check: Check, es: &[Expr]) -> usize {
        let ty = match check {
            Check::Index(_) => es.first().map_or(ScalarType::I32, |e| e.ty().scalar),
            Check::Divisor | Check::Exponent => ScalarType::U32,
        };
        let mut made = self.made.borrow_mut();
        made.iter().position(|m| m.check == check && m.ty == ty).unwrap_or_else(|| {
            made.push(Made { check, ty, arrays: BTreeSet::new() });
            made.len() - 1
        })
    }

    /// Records that a register holds this value.
    pub(super) fn hold(&self, register: u32, value: &Expr) {
        if let Expr::Checked(check @ Check::Index(_), es) = value {
            self.held.borrow_mut().insert(register, self.number(*check, es));
        }
    }

    /// Returns the variables of the checks made so far: the type and the name of each.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let made = self.made.borrow();
        let of = |(k, m): (usize, &Made)| (variable_type(m.check, m.ty), format!("checked_{k}"));
        made.iter().enumerate().map(of).collect()
    }

    /// Forgets what registers hold: those of another kernel follow.
    pub(super) fn forget_registers(&self) {
        self.held.borrow_mut().clear();
    }

    /// Records that an index is used for this array.
    pub(super) fn note(&self, index: &Expr, array: &str) {
        let number = match index {
            Expr::Checked(check, es) => Some(self.number(*check, es)),
            Expr::Reg(r) => self.held.borrow().get(&r.id).copied(),
            _ => None,
        };
        let mut made = self.made.borrow_mut();
        if let Some(made) = number.and_then(|k| made.get_mut(k)) {
            made.arrays.insert(array.to_owned());
        }
    }

    /// Returns the name of the function that makes a check, and the name of its variable.
    pub(super) fn call(&self, check: Check, es: &[Expr]) -> (String, String) {
        let noted = format!("checked_{}", self.number(check, es));
        let of = es.first().map_or(ElemTy::scalar(ScalarType::I32), Expr::ty);
        let (name, text) = match check {
            // Every index is outside. One more than the index is stored, since 0 stands for no failure.
            Check::Index(0) => {
                let int = c_type(Expr::Checked(check, es.to_vec()).ty());
                let name = format!("checked_index_of_none_{int}");
                let text = format!(
                    "\n{int} {name}(u{int} i, u{int} n, private u{int}* greatest) {{\n    \
                     *greatest = max(*greatest, add_sat(i, (u{int})1));\n    return 0;\n}}\n"
                );
                (name, text)
            }
            Check::Index(_) => {
                let int = c_type(Expr::Checked(check, es.to_vec()).ty());
                let name = format!("checked_index_{int}");
                let text = format!(
                    "\n{int} {name}(u{int} i, u{int} n, private u{int}* greatest) {{\n    \
                     *greatest = max(*greatest, i);\n    return ({int})min(i, n - 1);\n}}\n"
                );
                (name, text)
            }
            Check::Divisor => (format!("checked_divisor_{}", c_type(of)), divisor(of)),
            Check::Exponent => (format!("checked_exponent_{}", c_type(of)), exponent(of)),
        };
        self.shared.functions.borrow_mut().insert(text);
        (name, noted)
    }

    /// Returns the declarations of the variables, and the tests at the end of the kernel.
    pub(super) fn print(&self, kernel: &str) -> Around {
        let mut out = Around::default();
        for (k, Made { check, ty, arrays }) in self.made.borrow().iter().enumerate() {
            let (c, failed, index, kind) = match check {
                Check::Index(n) => {
                    let (least, skew) = if *n == 0 { (1, " - 1") } else { (*n, "") };
                    let wide = is_wide(*n, *ty);
                    let arrays = arrays.iter().cloned().collect();
                    (
                        variable_type(*check, *ty),
                        format!("checked_{k} >= {least}"),
                        match ty.is_signed() && !wide {
                            true => format!("(int)checked_{k}{skew}"),
                            false => format!("checked_{k}{skew}"),
                        },
                        FaultKind::Index { len: *n, arrays, index: *ty },
                    )
                }
                Check::Divisor | Check::Exponent => {
                    let division = *check == Check::Divisor;
                    let kind = if division { FaultKind::Division } else { FaultKind::Exponent };
                    let c = variable_type(*check, *ty);
                    (c, format!("checked_{k} != 0"), "0".to_owned(), kind)
                }
            };
            let mut faults = self.shared.faults.borrow_mut();
            faults.push(Fault { kernel: kernel.to_owned(), kind });
            let _ = writeln!(out.before, "    {c} checked_{k} = 0;");
            let _ = writeln!(
                out.after,
                "    if ({failed}) checked_report({FAULTS}, {}, {index});",
                faults.len()
            );
        }
        out
    }
}

/// Whether an index of this type into so many elements is kept in 64 bits.
fn is_wide(len: i64, index: ScalarType) -> bool {
    index.bytes() > 4 || len > i64::from(i32::MAX)
}

/// The type of the variable of a check.
fn variable_type(check: Check, index: ScalarType) -> &'static str {
    match check {
        Check::Index(n) if is_wide(n, index) => "ulong",
        Check::Index(_) | Check::Divisor | Check::Exponent => "uint",
    }
}

/// Returns a function that replaces a divisor by 1 if it is zero, and if the quotient would overflow: the least
/// number divided by -1 wraps to itself, with remainder 0, just as if it were divided by 1.
fn divisor(t: ElemTy) -> String {
    let c = c_type(t);
    let name = format!("checked_divisor_{c}");
    let head = format!("\n{c} {name}({c} d, {c} a, private uint* zero) {{\n");
    let least = format!("({c})({})", least_of(t.scalar));
    if t.width == 1 {
        let overflows = match t.scalar.is_signed() {
            true => format!(" || (d == -1 && a == {})", least_of(t.scalar)),
            false => String::new(),
        };
        return format!("{head}    *zero |= d == 0;\n    return d == 0{overflows} ? 1 : d;\n}}\n");
    }
    let overflows = match t.scalar.is_signed() {
        true => format!(" | ((d == ({c})(-1)) & (a == {least}))"),
        false => String::new(),
    };
    format!(
        "{head}    *zero |= any(d == ({c})(0));\n    \
         return select(d, ({c})(1), (d == ({c})(0)){overflows});\n}}\n"
    )
}

/// Returns the least number of a signed type, which has no literal of its own.
fn least_of(t: ScalarType) -> &'static str {
    match t {
        ScalarType::I8 => "CHAR_MIN",
        ScalarType::I16 => "SHRT_MIN",
        ScalarType::I64 => "LONG_MIN",
        _ => "INT_MIN",
    }
}

/// Returns a function that passes an exponent on and records whether it is negative. The loop that computes a power
/// ends at once if the exponent is negative.
fn exponent(t: ElemTy) -> String {
    let c = c_type(t);
    let failed = if t.width == 1 { "e < 0".to_owned() } else { format!("any(e < ({c})(0))") };
    format!(
        "\n{c} checked_exponent_{c}({c} e, private uint* negative) {{\n    \
         *negative |= {failed};\n    return e;\n}}\n"
    )
}
