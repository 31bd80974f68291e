use super::{LENGTHS, random};
use crate::diag::Source;
use crate::lang::types::ScalarType;
use crate::lang::{check_entry, format};

const SCALARS: [ScalarType; 11] = [
    ScalarType::F32,
    ScalarType::F64,
    ScalarType::I8,
    ScalarType::I16,
    ScalarType::I32,
    ScalarType::I64,
    ScalarType::U8,
    ScalarType::U16,
    ScalarType::U32,
    ScalarType::U64,
    ScalarType::Bool,
];

#[test]
fn nearly_all_programs_are_well_typed() {
    let mut wrong = vec![];
    for seed in 0..1000 {
        let sample = random(seed, &LENGTHS, &SCALARS);
        let source = Source::new("random.pat", sample.text.clone());
        if let Err(e) = check_entry(&source, None) {
            wrong.push(format!("{seed}: {e:?}\n{}", sample.text));
        }
        assert!(format(&source).is_ok(), "{}", sample.text);
    }
    eprintln!("{}", wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n"));
    assert!(wrong.len() < 20, "{} of 1000", wrong.len());
}

#[test]
fn a_seed_decides() {
    let make = |seed| random(seed, &LENGTHS, &SCALARS);
    assert_eq!(make(7), make(7));
    assert_ne!(make(7), make(8));
}
