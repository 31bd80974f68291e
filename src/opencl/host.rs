//! Host arrays: flat, typed bytes that are copied to and from a device.
//!
//! Shapes are not known here. A value's components are flattened left to right, one array for each.

use crate::lang::types::ScalarType;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Rust type with the layout of a [`ScalarType`].
pub trait Element: Copy {
    /// The corresponding scalar type.
    const TYPE: ScalarType;
    /// Appends the native-endian bytes.
    fn write(self, to: &mut Vec<u8>);
    /// Reads native-endian bytes; `from` has exactly [`ScalarType::bytes`] of them.
    fn read(from: &[u8]) -> Self;
}

macro_rules! element {
    ($($t:ty, $variant:ident;)*) => { $(
        impl Element for $t {
            const TYPE: ScalarType = ScalarType::$variant;
            fn write(self, to: &mut Vec<u8>) { to.extend_from_slice(&self.to_ne_bytes()); }
            fn read(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$t>()];
                bytes.copy_from_slice(from);
                <$t>::from_ne_bytes(bytes)
            }
        }
    )* };
}

element! {
    f16, F16; bf16, BF16; f32, F32; f64, F64;
    i8, I8; i16, I16; i32, I32; i64, I64;
    u8, U8; u16, U16; u32, U32; u64, U64;
}

impl Element for bool {
    const TYPE: ScalarType = ScalarType::Bool;
    fn write(self, to: &mut Vec<u8>) {
        to.push(u8::from(self));
    }
    fn read(from: &[u8]) -> Self {
        from != [0]
    }
}

/// A flat array of scalars: native-endian, without padding, `bool` as one byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    ty: ScalarType,
    data: Vec<u8>,
}

impl HostArray {
    /// Returns an array with these bytes; `None` if they are not a whole number of elements.
    pub fn from_bytes(ty: ScalarType, data: Vec<u8>) -> Option<HostArray> {
        data.len().is_multiple_of(ty.bytes()).then_some(HostArray { ty, data })
    }

    /// Returns an array of these elements.
    pub fn from_slice<T: Element>(elements: &[T]) -> HostArray {
        let mut data = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|&x| x.write(&mut data));
        HostArray { ty: T::TYPE, data }
    }

    /// Returns an array of zeros (or false).
    pub fn zeros(ty: ScalarType, len: usize) -> HostArray {
        HostArray { ty, data: vec![0; len * ty.bytes()] }
    }

    /// Returns the elements; `None` if they have another type.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (self.ty == T::TYPE).then(|| self.data.chunks_exact(self.ty.bytes()).map(T::read).collect())
    }

    /// Returns the element type.
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.data.len() / self.ty.bytes()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the raw bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Returns the raw bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.data
    }

    /// Returns element `i` of an array of integers.
    pub fn as_int(&self, i: usize) -> Option<i128> {
        let w = self.ty.bytes();
        let b = self.data.get(i.checked_mul(w)?..)?.get(..w)?;
        Some(match self.ty {
            ScalarType::I8 => i8::read(b).into(),
            ScalarType::I16 => i16::read(b).into(),
            ScalarType::I32 => i32::read(b).into(),
            ScalarType::I64 => i64::read(b).into(),
            ScalarType::U8 => u8::read(b).into(),
            ScalarType::U16 => u16::read(b).into(),
            ScalarType::U32 => u32::read(b).into(),
            ScalarType::U64 => u64::read(b).into(),
            ScalarType::F16
            | ScalarType::BF16
            | ScalarType::F32
            | ScalarType::F64
            | ScalarType::Bool => return None,
        })
    }

    /// Returns element `i` as `f64` (truth values as 0 and 1; integers beyond 2^53 are rounded).
    pub fn as_f64(&self, i: usize) -> Option<f64> {
        let w = self.ty.bytes();
        let b = self.data.get(i.checked_mul(w)?..)?.get(..w)?;
        Some(match self.ty {
            ScalarType::F16 => f16::read(b).to_f64(),
            ScalarType::BF16 => bf16::read(b).to_f64(),
            ScalarType::F32 => f64::from(f32::read(b)),
            ScalarType::F64 => f64::read(b),
            ScalarType::I8 => f64::from(i8::read(b)),
            ScalarType::I16 => f64::from(i16::read(b)),
            ScalarType::I32 => f64::from(i32::read(b)),
            ScalarType::I64 => i64::read(b) as f64,
            ScalarType::U8 => f64::from(u8::read(b)),
            ScalarType::U16 => f64::from(u16::read(b)),
            ScalarType::U32 => f64::from(u32::read(b)),
            ScalarType::U64 => u64::read(b) as f64,
            ScalarType::Bool => f64::from(u8::from(bool::read(b))),
        })
    }
}

/// Identifies an array: component `component` of parameter `param`, tuples flattened left to right.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// The entry's parameter.
    pub param: String,
    /// The component of the parameter.
    pub component: usize,
}

/// A program's inputs. A scalar is an array of length 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(pub BTreeMap<Slot, HostArray>);

impl Inputs {
    /// Sets a component.
    pub fn insert(&mut self, param: impl Into<String>, component: usize, array: HostArray) {
        self.0.insert(Slot { param: param.into(), component }, array);
    }

    /// Returns a component.
    pub fn get(&self, param: &str, component: usize) -> Option<&HostArray> {
        self.0.get(&Slot { param: param.into(), component })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive() {
        let xs = [1.5f32, -0.0, f32::INFINITY];
        let a = HostArray::from_slice(&xs);
        assert_eq!((a.ty(), a.len()), (ScalarType::F32, 3));
        assert_eq!(a.to_vec::<f32>().expect("of that type"), xs);
        assert_eq!(a.to_vec::<i32>(), None);
        assert_eq!(a.as_f64(0), Some(1.5));
        assert_eq!(a.as_f64(3), None);
        assert_eq!(
            HostArray::from_slice(&[true, false]).to_vec::<bool>().expect("of that type"),
            [true, false]
        );
        assert!(HostArray::from_bytes(ScalarType::I32, vec![0; 5]).is_none());
        let (short, long) =
            (HostArray::from_slice(&[-3i16, 4]), HostArray::from_slice(&[u64::MAX]));
        assert_eq!((short.as_int(0), short.as_int(2)), (Some(-3), None));
        assert_eq!((long.as_int(0), a.as_int(0)), (Some(u64::MAX.into()), None));
        assert_eq!(HostArray::zeros(ScalarType::F16, 2).as_f64(1), Some(0.0));
    }
}
