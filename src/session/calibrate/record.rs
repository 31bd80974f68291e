//! Records the quantities of a calibration, as a list and as comments of the cost-model file.

use super::lab::{Answer, Reading};
use serde::Serialize;

/// A quantity of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Its place in the cost model, such as `memory.read_gb_per_s`. Quantities outside the model begin with
    /// `observed.`.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// The unit, in words.
    pub unit: &'static str,
    /// Half the distance between the quartiles of its timings, as a share of their median; `None` if it was not
    /// measured.
    pub spread: Option<f64>,
    /// How it was measured, or why it was not.
    pub how: String,
}

impl Quantity {
    /// Returns the comment about it in the file, after `first`.
    fn remark(&self, first: &str) -> String {
        let first = if first.is_empty() { String::new() } else { format!("{first}: ") };
        let spread =
            self.spread.map_or_else(String::new, |s| format!(" (spread {:.1}%)", 100.0 * s));
        format!("{first}{}{spread}", self.how)
    }
}

/// The quantities of a calibration.
#[derive(Debug, Default)]
pub struct Record {
    pub quantities: Vec<Quantity>,
    /// The name of the model that supplies the values that are not measured.
    pub base: String,
}

impl Record {
    /// Adds a measured quantity, and returns its value. A value that is not a whole number is rounded to three
    /// significant digits.
    pub fn measured(
        &mut self,
        key: impl Into<String>,
        unit: &'static str,
        value: f64,
        spread: f64,
        how: impl Into<String>,
    ) -> f64 {
        let value = if value.fract() == 0.0 { value } else { rounded(value) };
        let (key, how) = (key.into(), how.into());
        self.quantities.push(Quantity { key, value, unit, spread: Some(spread), how });
        value
    }

    /// Adds a quantity that keeps its value from the base model.
    pub fn kept(&mut self, key: &str, unit: &'static str, value: f64, why: &str) -> f64 {
        let how = format!("not measured ({why}): as in `{}`", self.base);
        self.quantities.push(Quantity { key: key.into(), value, unit, spread: None, how });
        value
    }

    /// Adds a quantity that follows from what the driver reports.
    pub fn told(&mut self, key: &str, unit: &'static str, value: f64, what: &str) -> f64 {
        let how = format!("{what}, says the driver");
        self.quantities.push(Quantity { key: key.into(), value, unit, spread: None, how });
        value
    }

    /// Adds a quantity: measured if there is a usable reading, else with its old value.
    pub fn answer(
        &mut self,
        (key, unit): (&str, &'static str),
        old: f64,
        answer: &Answer,
        value: impl Fn(&Reading) -> f64,
        how: &str,
    ) -> f64 {
        match answer {
            Ok(r) if value(r).is_finite() && value(r) > 0.0 => {
                self.measured(key, unit, value(r), r.spread, how)
            }
            Ok(_) => self.kept(key, unit, old, "it is less than can be told from noise"),
            Err(why) => self.kept(key, unit, old, why),
        }
    }

    /// Returns the comment lines above a quantity in the file.
    pub fn comment(&self, key: &str) -> Vec<String> {
        let of = |q: &&Quantity| q.key == key;
        self.quantities.iter().filter(of).flat_map(|q| wrapped(&q.remark(q.unit))).collect()
    }

    /// Returns the quantities outside the model, as comment lines.
    pub fn observed(&self) -> Vec<String> {
        let seen =
            self.quantities.iter().filter_map(|q| Some((q.key.strip_prefix("observed.")?, q)));
        let said = |(name, q): (&str, &Quantity)| {
            wrapped(&q.remark(format!("{name} = {} {}", q.value, q.unit).trim_end()))
        };
        seen.flat_map(said).collect()
    }
}

/// Rounds to three significant digits.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(clippy::cast_possible_truncation, reason = "an exponent")]
    let digits = 2 - value.abs().log10().floor() as i32;
    if digits >= 0 {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    } else {
        let scale = 10f64.powi(-digits);
        (value / scale).round() * scale
    }
}

/// Wraps a text into lines of at most 100 characters.
pub fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 100;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(last) = lines.last_mut() {
            if last.is_empty() {
                last.push_str(word);
            } else if last.len() + word.len() < WIDTH {
                last.push(' ');
                last.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits() {
        assert_eq!(rounded(95.4321), 95.4);
        assert_eq!(rounded(4242.7), 4240.0);
        assert_eq!(rounded(0.000_123_456), 0.000_123);
        assert_eq!(rounded(0.0), 0.0);
    }

    #[test]
    fn comments_say_unit_spread_and_method() {
        let mut r = Record { base: "generic-cpu".into(), ..Record::default() };
        assert_eq!(r.measured("local.gb_per_s", "GB/s", 60.123, 0.021, "reading it"), 60.1);
        assert_eq!(r.comment("local.gb_per_s"), ["GB/s: reading it (spread 2.1%)"]);
        r.kept("compute.f64_gflops", "10^9/s", 4.0, "it has no doubles");
        let said = r.comment("compute.f64_gflops");
        assert_eq!(said, ["10^9/s: not measured (it has no doubles): as in `generic-cpu`"]);
        r.measured("observed.atomic", "ns", 3.0, 0.0, "adding");
        assert_eq!(r.observed(), ["atomic = 3 ns: adding (spread 0.0%)"]);
        assert!(wrapped(&"word ".repeat(80)).iter().all(|l| l.len() <= 100));
    }
}
