use super::numbers::{Recipe, Type, fill, random};
use half::{bf16, f16};

fn floats(recipe: Recipe, length: usize) -> Vec<f32> {
    let bytes = fill(recipe, Type::F32, length, 7);
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn random_numbers_are_those_of_the_published_generator() {
    // The first outputs of SplitMix64 from the seed 1234567, as printed by Rosetta Code and by Vigna's own program.
    let published =
        [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
    assert_eq!([0, 1, 2].map(|i| random(1_234_567, i)), published);
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "some of the random bits")]
fn halves_are_rounded_as_the_library_does() {
    for i in 0..20_000 {
        let bits = random(1, i);
        // Numbers of every magnitude, including ties and numbers that are too large or too small.
        let x = f64::from(f32::from_bits((bits >> 32) as u32 & 0xffff_e000));
        let near = f64::from(bits as i16) / 8.0;
        let tie = f16::from_bits(bits as u16 & 0x7bfe).to_f64();
        let tie = f64::midpoint(tie, f16::from_bits((bits as u16 & 0x7bfe) + 1).to_f64());
        for x in [x, near, near / 1e6, tie, -tie, 65520.0, 65519.0] {
            let made = fill(Recipe::Float(x), Type::F16, 1, 0);
            let made = f16::from_bits(u16::from_le_bytes([made[0], made[1]]));
            let want = f16::from_f64(x);
            assert!(made.to_bits() == want.to_bits() || made.is_nan() && want.is_nan(), "{x}");
        }
    }
    for bits in 0..=u16::MAX {
        let read = f64::from_bits(Type::F16.read(&bits.to_le_bytes()));
        let want = f16::from_bits(bits).to_f64();
        assert!(read.to_bits() == want.to_bits() || read.is_nan() && want.is_nan(), "{bits}");
    }
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "some of the random bits")]
fn upper_halves_are_rounded_as_the_library_does() {
    for i in 0..20_000 {
        let bits = random(2, i);
        for x in [bits as u32, bits as u32 & 0xffff_8000, 0x7f7f_8000, 0x7f7f_7fff, 1] {
            let x = f32::from_bits(x);
            let made = fill(Recipe::Float(x.into()), Type::BF16, 1, 0);
            let made = bf16::from_bits(u16::from_le_bytes([made[0], made[1]]));
            let want = bf16::from_f32(x);
            assert!(made.to_bits() == want.to_bits() || made.is_nan() && want.is_nan(), "{x}");
        }
    }
    for bits in 0..=u16::MAX {
        let read = f64::from_bits(Type::BF16.read(&bits.to_le_bytes()));
        let want = bf16::from_bits(bits).to_f64();
        assert!(read.to_bits() == want.to_bits() || read.is_nan() && want.is_nan(), "{bits}");
    }
}

#[test]
fn recipes_stay_in_their_ranges() {
    let normal = floats(Recipe::Normal, 10_000);
    let mean = normal.iter().sum::<f32>() / 1e4;
    let square = normal.iter().map(|x| x * x).sum::<f32>() / 1e4;
    assert!(mean.abs() < 0.05 && (1.2..1.5).contains(&square), "{mean} {square}");
    let range = floats(Recipe::Range { low: -1.0, step: 3.0 / 16_777_216.0 }, 10_000);
    assert!(range.iter().all(|x| (-1.0..2.0).contains(x)));
    assert!(range.iter().any(|x| *x < -0.99) && range.iter().any(|x| *x > 1.99));
    let whole = floats(Recipe::Whole { low: -2, count: 5 }, 1000);
    assert!((-2..3).all(|k| whole.contains(&(k as f32))) && whole.iter().all(|x| x.abs() <= 2.0));
    let others = fill(Recipe::Others { count: 7, modulus: 7, divisor: 1 }, Type::U8, 700, 3);
    assert!(others.iter().enumerate().all(|(i, o)| *o < 7 && usize::from(*o) != i % 7));
    assert_eq!(fill(Recipe::Position, Type::I16, 3, 0), [0, 0, 1, 0, 2, 0]);
    assert_eq!(fill(Recipe::Position, Type::Bool, 3, 0), [0, 1, 0]);
    assert_eq!(fill(Recipe::Integer(-1), Type::U32, 1, 0), [0xff; 4]);
}

#[test]
fn results_are_compared_as_the_interpreter_does() {
    let agrees =
        |have: f64, want: f64, slack| Type::F32.agrees(have.to_bits(), want.to_bits(), slack);
    assert!(agrees(1.0, 1.5, 0.5) && !agrees(1.0, 1.5, 0.4) && agrees(-0.0, 0.0, 0.0));
    assert!(agrees(f64::NAN, f64::NAN, 0.0) && !agrees(f64::NAN, 1.0, 9.0));
    assert!(agrees(f64::INFINITY, 3.4e38, 1e37) && !agrees(f64::INFINITY, 3.0, 1.0));
    assert!(!agrees(f64::INFINITY, f64::NEG_INFINITY, 1.0));
    assert!(Type::I8.agrees(Type::I8.read(&[0xff]), u64::MAX, 0.0));
    assert!(!Type::U8.agrees(Type::U8.read(&[0xff]), u64::MAX, 0.0));
}
