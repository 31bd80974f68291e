//! Generates records, and tuples by way of them.

use super::{Generator, Made, tuple};

impl Generator {
    /// Returns a tuple of these parts, in one of three programs made of the fields of a record.
    pub(super) fn tuple_or_record(&mut self, parts: &[Made]) -> Made {
        let whole = tuple(parts);
        if !self.once_in(3) {
            return whole;
        }
        // The order of the names is not that of the parts.
        let mut fields: Vec<String> = parts.iter().map(|_| self.name("r")).collect();
        if self.once_in(2) {
            fields.reverse();
        }
        let written: Vec<String> =
            fields.iter().zip(parts).map(|(f, p)| format!("{f} = {}", p.text)).collect();
        let record = format!("{{{}}}", written.join(", "));
        let text = if self.once_in(2) {
            let renamed = self.name("q");
            let (pattern, mut used) = (fields[1..].join(", "), fields.clone());
            used[0].clone_from(&renamed);
            format!(
                "(let {{{pattern}, {} = {renamed}}} = {record} in ({}))",
                fields[0],
                used.join(", ")
            )
        } else {
            let name = self.name("q");
            let used: Vec<String> = fields.iter().map(|f| format!("{name}.{f}")).collect();
            let update = format!("{name} with {0} = {name}.{0}", fields[0]);
            format!("(let {name} = {record} let {name} = {update} in ({}))", used.join(", "))
        };
        Made { text, ..whole }
    }
}
