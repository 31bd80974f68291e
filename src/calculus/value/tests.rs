use super::*;
use crate::lang::typed::PadMode;
use ScalarType::{Bool, F16, F32, I32, U8};

fn iota(n: i64) -> Value {
    Value::ints(
        I32,
        &[usize::try_from(n).expect("a length is not negative")],
        &(0..n).collect::<Vec<_>>(),
    )
}

#[test]
fn views() {
    let x = iota(6);
    assert_eq!(x.split(2, 3).expect("the shape allows it").join().expect("the shape allows it"), x);
    assert_eq!(
        x.split(2, 3)
            .expect("the shape allows it")
            .transpose()
            .expect("the shape allows it")
            .to_ints(),
        [0, 2, 4, 1, 3, 5]
    );
    let m = x.split(3, 2).expect("the shape allows it");
    assert_eq!(
        m.transpose().expect("the shape allows it").transpose().expect("the shape allows it"),
        m
    );
    assert_eq!(
        m.transpose().expect("the shape allows it").join().expect("the shape allows it").to_ints(),
        [0, 3, 1, 4, 2, 5]
    );
    assert_eq!(x.reverse().expect("the shape allows it").to_ints(), [5, 4, 3, 2, 1, 0]);
    assert_eq!(
        x.slice(1, 3)
            .expect("the shape allows it")
            .reverse()
            .expect("the shape allows it")
            .to_ints(),
        [3, 2, 1]
    );
    assert_eq!(x.slide(3, 2, 2).expect("the shape allows it").to_ints(), [0, 1, 2, 2, 3, 4]);
    assert_eq!(x.row(4).replicate(3).to_ints(), [4, 4, 4]);
    assert_eq!(
        x.slice(0, 2)
            .expect("the shape allows it")
            .replicate_rows(2)
            .expect("the shape allows it")
            .to_ints(),
        [0, 0, 1, 1]
    );
    assert_eq!(x.rotate(8).expect("the shape allows it").to_ints(), [2, 3, 4, 5, 0, 1]);
    assert_eq!(iota(8).stride(4).expect("the shape allows it").to_ints(), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(iota(2).concat(&iota(1)).expect("the shape allows it").to_ints(), [0, 1, 0]);
    assert!(x.split(4, 1).is_err() && x.slice(4, 3).is_err() && x.slide(3, 2, 3).is_err());
    assert!(x.transpose().is_err() && x.stride(4).is_err());
}

#[test]
fn dimensions_move() {
    let x = iota(24)
        .split(4, 6)
        .expect("the shape allows it")
        .split(3, 2)
        .expect("the shape allows it");
    let y = x.inward(0).expect("the shape allows it");
    assert_eq!(y.leaves()[0].shape(), [3, 4, 2]);
    assert_eq!(y.to_ints()[..4], [0, 12, 1, 13]);
    assert_eq!(y.outward(0).expect("the shape allows it"), x);
    let z = x.inward(1).expect("the shape allows it");
    assert_eq!(z.leaves()[0].shape(), [2, 4, 3]);
    assert_eq!(z.outward(1).expect("the shape allows it"), x);
    assert_eq!(x.inward(2).expect("the shape allows it"), x);
    assert!(x.inward(3).is_err() && iota(3).outward(1).is_err());
}

#[test]
fn columns_in_parts_are_the_whole() {
    // Numbers whose magnitude is their absolute value, and others.
    let cell = |i: usize| {
        let c = Cell::float(F32, i as f64);
        if i % 5 == 4 { Cell::inexact(i as f64, 100.0) } else { c }
    };
    for cuts in [[0, 3], [3, 4], [4, 9], [5, 5], [0, 9]] {
        let mut whole = Column::new(F32, 9);
        (0..9).for_each(|i| whole.push(cell(i)));
        let mut parts = Column::new(F32, 0);
        for range in [0..cuts[0], cuts[0]..cuts[1], cuts[1]..9] {
            let mut part = Column::new(F32, range.len());
            range.for_each(|i| part.push(cell(i)));
            parts.append(part);
        }
        let (whole, parts) = (whole.finish(&[9]), parts.finish(&[9]));
        for i in 0..9 {
            assert_eq!(
                (parts.cell(i).bits, parts.cell(i).doubt),
                (whole.cell(i).bits, whole.cell(i).doubt)
            );
        }
    }
}

#[test]
fn empty_arrays() {
    let x = iota(0);
    for y in [x.reverse(), x.rotate(3), x.stride(4), x.pad_last(0), x.slide(3, 1, 0), x.split(4, 0)]
    {
        assert_eq!(y.expect("the shape allows it").to_ints(), Vec::<i128>::new());
    }
    assert!(x.pad_last(2).is_err());
}

#[test]
fn padding() {
    let x = iota(3);
    assert_eq!(
        x.pad(PadMode::Clamp, 2, 6).expect("the shape allows it").to_ints(),
        [0, 0, 0, 1, 2, 2]
    );
    assert_eq!(
        x.pad(PadMode::Wrap, 4, 9).expect("the shape allows it").to_ints(),
        [2, 0, 1, 2, 0, 1, 2, 0, 1]
    );
    assert_eq!(
        x.pad(PadMode::Mirror, 4, 9).expect("the shape allows it").to_ints(),
        [2, 2, 1, 0, 0, 1, 2, 2, 1]
    );
    let z = Value::scalar(I32, Cell::int(7));
    assert_eq!(x.pad_with(&z, 1, 5).expect("the shape allows it").to_ints(), [7, 0, 1, 2, 7]);
    assert_eq!(x.pad_last(5).expect("the shape allows it").to_ints(), [0, 1, 2, 2, 2]);
}

#[test]
fn buffers_round_trip() {
    let shape = Shape::array(
        2,
        Shape::Tuple(vec![Shape::Scalar(F32), Shape::Scalar(U8), Shape::Scalar(Bool)]),
    );
    let buffers =
        vec![[1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat(), vec![255, 3], vec![1, 0]];
    let value =
        Value::from_bytes(&shape, &buffers).expect("the bytes are as many as the shape needs");
    value.conforms(&shape).expect("a value has its own shape");
    assert_eq!(value.to_floats(), [1.5, -2.0, 255.0, 3.0, 1.0, 0.0]);
    let back: Vec<Vec<u8>> = value.components().into_iter().map(|c| c.1).collect();
    assert_eq!(back, buffers);
    assert!(Value::from_bytes(&shape, &buffers[..2]).is_err());
    let half = Value::floats(F16, &[1], &[0.1]);
    assert_eq!(half.components()[0].1, half::f16::from_f64(0.1).to_le_bytes());
}

#[test]
fn comparisons() {
    let sum = |x: f64, mag: f64| Value::scalar(F32, Cell::inexact(x, mag));
    let bytes = |x: f32| [x.to_le_bytes()];
    assert!(compare(&sum(1000.0, 1000.0), &bytes(1000.001), 1000).ok);
    let lost = compare(&sum(1000.0, 1000.0), &bytes(999.0), 1000);
    assert!(!lost.ok && lost.worst == Some((0, 0)));
    assert_eq!(lost.first.as_deref(), Some("result 0, element 0: 999.0 instead of 1000.0"));
    assert!(!compare(&sum(40_000.0, 40_000.0), &bytes(40_001.0), 40_000).ok);
    // A sum that cancelled may be off by its terms' rounding, and no more.
    assert!(compare(&sum(0.0, 1000.0), &bytes(0.001), 1000).ok);
    assert!(!compare(&sum(0.0, 1000.0), &bytes(0.1), 1000).ok);
    assert!(compare(&sum(f64::NAN, 0.0), &bytes(f32::NAN), 1).ok);
    assert!(compare(&sum(1e39, 1e39), &bytes(f32::INFINITY), 1).ok);
    assert!(!compare(&sum(1e30, 1e30), &bytes(f32::INFINITY), 1).ok);
    assert!(compare(&sum(0.0, 0.0), &bytes(-0.0), 1).ok);
    assert!(!compare(&sum(1.0, 1.0), &bytes(f32::NAN), 1).ok);
    let ints = Value::ints(I32, &[2, 2], &[1, 2, 3, 4]);
    let off =
        compare_values(&ints, &Value::ints(I32, &[2, 2], &[1, 2, 4, 4]), |t| Tolerance::of(t, 1));
    assert_eq!(off.first.as_deref(), Some("result 0, element 2 [1, 0]: 4 instead of 3"));
    assert!(!compare(&ints, &[[0u8; 4]], 1).ok);
}
