//! Draws charts as inline SVG: points and lines over two axes, in the page's colours.

use super::escaped;
use std::fmt::Write;

/// The dimensions of the drawing, in its own units; the page scales it.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// An axis of a chart.
pub struct Axis {
    label: String,
    low: f64,
    high: f64,
    logarithmic: bool,
    show: fn(f64) -> String,
}

impl Axis {
    /// Makes a logarithmic axis that covers the positive ones of these values.
    pub fn log(label: &str, values: impl Iterator<Item = f64>, show: fn(f64) -> String) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for v in values.filter(|v| v.is_finite() && *v > 0.0) {
            (low, high) = (low.min(v), high.max(v));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        // Leaves some room on both sides, and covers at least half a decade.
        let room = (0.08 * (high / low).ln()).max(0.12).exp();
        (low, high) = (low / room, high * room);
        if high / low < 3.2 {
            let middle = (low * high).sqrt();
            (low, high) = (middle / 1.8, middle * 1.8);
        }
        Axis { label: label.to_owned(), low, high, logarithmic: true, show }
    }

    /// Makes a linear axis from 0 to a whole number.
    pub fn count(label: &str, most: usize) -> Axis {
        let high = most.max(1) as f64;
        let show = |v: f64| format!("{v:.0}");
        Axis { label: label.to_owned(), low: 0.0, high: high * 1.03, logarithmic: false, show }
    }

    /// Returns the share of the axis below a value, from 0 to 1.
    fn at(&self, v: f64) -> f64 {
        let share = if self.logarithmic {
            (v.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (v - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the values of the tick marks: round numbers, about eight at most.
    fn ticks(&self) -> Vec<f64> {
        let inside = |v: &f64| (self.low..=self.high).contains(v);
        if !self.logarithmic {
            let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 1e4, 1e5];
            let step = step.into_iter().find(|s| self.high / s <= 8.0).unwrap_or(1e6);
            return (0..=8).map(|i| f64::from(i) * step).filter(inside).collect();
        }
        #[expect(clippy::cast_possible_truncation, reason = "an exponent")]
        let (from, to) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let of = |marks: &[f64], every: usize| -> Vec<f64> {
            let decades = (from..=to).step_by(every);
            let all = decades.flat_map(|d| marks.iter().map(move |m| m * 10f64.powi(d)));
            all.filter(inside).collect()
        };
        let fine = of(&[1.0, 2.0, 5.0], 1);
        match fine.len() {
            0..=2 => of(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1),
            3..=8 => fine,
            _ => of(&[1.0], (to - from).unsigned_abs() as usize / 8 + 1),
        }
    }
}

/// A chart being drawn.
pub struct Chart {
    x: Axis,
    y: Axis,
    marks: String,
}

impl Chart {
    /// Makes an empty chart.
    pub fn new(x: Axis, y: Axis) -> Chart {
        Chart { x, y, marks: String::new() }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (w, h) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (LEFT + w * self.x.at(x), TOP + h * (1.0 - self.y.at(y)))
    }

    /// Adds a dot of a class of the style sheet, with the tooltip `says`.
    pub fn dot(&mut self, class: &str, at: (f64, f64), says: &str) {
        let (x, y) = self.place(at);
        let r = if class == "best" { 5.5 } else { 3.5 };
        let says = escaped(says);
        // Writing into a string does not fail.
        let _ = writeln!(
            self.marks,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"><title>{says}</title></circle>"
        );
    }

    /// Adds a line through points.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> =
            points.iter().map(|p| self.place(*p)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(self.marks, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    /// Adds the diagonal, on which both axes have the same value.
    pub fn diagonal(&mut self) {
        let (low, high) = (self.x.low.max(self.y.low), self.x.high.min(self.y.high));
        if low < high {
            self.line("guide", &[(low, low), (high, high)]);
        }
    }

    /// Returns the ends of the horizontal axis.
    pub fn span(&self) -> (f64, f64) {
        (self.x.low, self.x.high)
    }

    /// Renders the chart as SVG, with the text alternative `says`.
    pub fn svg(&self, says: &str) -> String {
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(says)
        );
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for v in self.x.ticks() {
            let (x, _) = self.place((v, self.y.low));
            let (below, text) = (floor + 16.0, escaped(&(self.x.show)(v)));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{floor}\"/>\
                 <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>"
            );
        }
        for v in self.y.ticks() {
            let (_, y) = self.place((self.x.low, v));
            let (beside, lower, text) = (LEFT - 7.0, y + 4.0, escaped(&(self.y.show)(v)));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{beside}\" y=\"{lower:.1}\" text-anchor=\"end\">{text}</text>"
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{floor}H{right}\"/>\n\
             <text class=\"label\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text class=\"label\" transform=\"translate(13 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 8.0,
            escaped(&self.x.label),
            f64::midpoint(TOP, floor),
            escaped(&self.y.label),
        );
        out.push_str(&self.marks);
        out.push_str("</svg>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(v: f64) -> String {
        format!("{v}")
    }

    #[test]
    fn axes_hold_their_values_and_have_few_ticks() {
        for values in [&[1.0, 1.01][..], &[1e-9, 1e9], &[3.0], &[], &[0.0, f64::NAN]] {
            let axis = Axis::log("t", values.iter().copied(), plain);
            for v in values.iter().filter(|v| **v > 0.0) {
                assert!(axis.low < *v && *v < axis.high, "{v} on {}..{}", axis.low, axis.high);
            }
            let ticks = axis.ticks();
            assert!((2..=9).contains(&ticks.len()), "{values:?}: {ticks:?}");
        }
        assert_eq!(Axis::count("n", 12).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    }

    #[test]
    fn what_is_drawn_lies_inside() {
        let axis = || Axis::log("t", [1.0, 100.0].into_iter(), plain);
        let mut chart = Chart::new(axis(), axis());
        for v in [1.0, 10.0, 100.0, 1e9, f64::INFINITY] {
            let (x, y) = chart.place((v, v));
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y));
        }
        chart.dot("timed", (10.0, 10.0), "a < b");
        assert!(chart.svg("<all>").contains("a &lt; b"));
        assert!(!chart.svg("<all>").contains("<all>"));
    }
}
