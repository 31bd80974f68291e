//! Sizes on the command line.

use super::args::pair;

/// Suffixes of whole numbers, the longer ones first.
const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Parses a whole number: `1000000`, `1_000_000`, `1e6`, `1M`, `1Mi`, `1.5k` or `2**20`.
pub fn whole(text: &str) -> Result<u64, String> {
    parse(&text.replace('_', "")).ok_or_else(|| {
        format!("`{text}` is not a size: expected a whole number, such as 1000000, 1e6, 1M, 1Mi or 2**20")
    })
}

fn parse(text: &str) -> Option<u64> {
    if let Some((base, exponent)) = text.split_once("**").or_else(|| text.split_once('^')) {
        return base.parse::<u64>().ok()?.checked_pow(exponent.parse().ok()?);
    }
    let unit = UNITS.iter().find_map(|(name, n)| Some((text.strip_suffix(name)?, *n)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    if let Ok(n) = digits.parse::<u64>() {
        return n.checked_mul(unit);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "floats of this range hold every whole number"
    )]
    let whole = |n: f64| ((0.0..=9e15).contains(&n) && n.fract() == 0.0).then_some(n as u64);
    whole(digits.parse::<f64>().ok()? * unit as f64)
}

/// Parses `NAME=N`.
pub fn size(text: &str) -> Result<(String, u64), String> {
    let (name, value) = pair(text)?;
    Ok((name, whole(&value)?))
}

/// Parses `NAME=N,N,...`.
pub fn sizes(text: &str) -> Result<(String, Vec<u64>), String> {
    let (name, values) = pair(text)?;
    let numbers = values.split(',').map(|value| {
        whole(value).map_err(|e| match value.contains('=') {
            true => format!("{e}; give another size with another `--size`"),
            false => e,
        })
    });
    Ok((name, numbers.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, n) in [
            ("0", 0),
            ("1_000", 1_000),
            ("1e6", 1_000_000),
            ("1.5k", 1_500),
            ("2**20", 1 << 20),
            ("16Mi", 16 << 20),
            ("3M", 3_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(whole(text), Ok(n), "{text}");
        }
        for text in ["", "Mi", "-1", "1.5", "1e30", "inf", "nan", "2**64", "17179869184Gi", "n"] {
            assert!(whole(text).is_err(), "{text}");
        }
        assert_eq!(sizes("n=1Ki,2,3e0"), Ok(("n".into(), vec![1024, 2, 3])));
        assert!(sizes("n=1,m=2").is_err_and(|e| e.contains("another `--size`")));
    }
}
