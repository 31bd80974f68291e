//! Matrix instructions: which products they add up.

use crate::calculus::ty::Ty;
use crate::lang::types::ScalarType;

/// Words of 4 bytes of each row and each column that an instruction reads.
pub const WORDS: u64 = 8;

/// What the matrix instructions of one kind multiply, and what they add the products to. All of them read
/// [`WORDS`] words of 16 rows and 8 columns, which hold as many elements as fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Products {
    /// `f32`, each multiplied in two parts of less precision, with sums in `f32`.
    F32,
    /// `f16`, whose products are exact in `f32`, with sums in `f32`.
    F16,
    /// `bf16`, likewise.
    BF16,
    /// `i8` with sums in `i32`.
    I8,
}

impl Products {
    /// All kinds.
    pub const ALL: [Products; 4] = [Products::F32, Products::F16, Products::BF16, Products::I8];

    /// The name of the capability of devices that have the instructions.
    pub fn capability(self) -> &'static str {
        match self {
            Products::F32 => "products",
            Products::F16 => "products_f16",
            Products::BF16 => "products_bf16",
            Products::I8 => "products_i8",
        }
    }

    /// The type of what is multiplied.
    pub fn operand(self) -> ScalarType {
        match self {
            Products::F32 => ScalarType::F32,
            Products::F16 => ScalarType::F16,
            Products::BF16 => ScalarType::BF16,
            Products::I8 => ScalarType::I8,
        }
    }

    /// The type of the sums.
    pub fn sum(self) -> ScalarType {
        match self {
            Products::F32 | Products::F16 | Products::BF16 => ScalarType::F32,
            Products::I8 => ScalarType::I32,
        }
    }

    /// Elements in a word.
    pub fn in_word(self) -> u64 {
        (4 / self.operand().bytes().max(1)) as u64
    }

    /// Whether the sums of a block begin at zero, and are added to the others with ordinary additions. Instructions truncate sums,
    /// which would cost several digits of `f32` in a long reduction. Operands of half precision have no such digits, and sums of integers are exact.
    pub fn sums_apart(self) -> bool {
        self == Products::F32
    }

    /// Instructions that add such products to a sum: those of the parts of `f32`.
    pub fn instructions(self) -> u64 {
        if self == Products::F32 { 3 } else { 1 }
    }

    /// Products that an instruction adds to a sum.
    pub fn terms(self) -> u64 {
        WORDS * self.in_word()
    }

    /// Returns the kind of [`Op::SumProducts`](super::Op::SumProducts), from its argument type.
    pub fn of(dom: &Ty) -> Option<Products> {
        let Ty::Array(_, rows) = dom else { return None };
        let Ty::Array(_, place) = &**rows else { return None };
        let Ty::Pair(sum, terms) = &**place else { return None };
        let Ty::Array(_, term) = &**terms else { return None };
        let Ty::Pair(_, operands) = &**term else { return None };
        let Ty::Pair(operand, _) = &**operands else { return None };
        let is = |t: &Ty, s: ScalarType| *t == Ty::Scalar(s);
        Products::ALL.into_iter().find(|p| is(sum, p.sum()) && is(operand, p.operand()))
    }
}
