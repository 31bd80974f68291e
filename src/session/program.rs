//! Reads and checks program files, with which every command starts.

use super::generate::{Bound, Generator};
use super::imports;
use crate::calculus::elaborate::{self, elaborate};
use crate::calculus::laws;
use crate::diag::{Code, Diagnostic, Failure, Label, Result, Severity, Source, Span};
use crate::lang;
use crate::lang::ast::Name;
use crate::lang::size::Size;
use crate::lang::typed::Entry;
use crate::lang::types::{ScalarType, Type};
use crate::rules::RuleSet;
use indexmap::IndexMap;
use std::path::Path;
use std::sync::Arc;

/// Values of an entry's size parameters, by name, in order of declaration.
pub type Sizes = IndexMap<String, u64>;

/// One entry of a file, checked.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file.
    pub source: Arc<Source>,
    /// The entry with the sizes that the file declares.
    pub entry: Entry,
    /// The entry with sizes as general as its body allows, so that two axes that merely have the same length are
    /// different dimensions to the optimiser.
    general: Entry,
    /// How patterns begin whose initial value is no neutral element as it is written.
    begins: laws::Begins,
    /// Every size of `general`, and the declared size it equals.
    fresh: Vec<(String, Size)>,
    /// The generators of parameters (or of components, `xs.1`) that are not given, from the lines `gen: NAME=HOW ...`
    /// that belong to the entry.
    pub(super) samples: IndexMap<String, Generator>,
    /// The values of sizes that are not given, from the same lines, with their places.
    pub(super) usual: IndexMap<String, (Bound, Span)>,
}

impl Program {
    /// Reads and checks one entry of a file. The name may be left out when the file has one entry.
    ///
    /// # Errors
    /// When the file cannot be read (E0901), is not a valid program, or has no such entry.
    pub fn load(path: &Path, entry: Option<&str>) -> Result<Program> {
        Program::check(&imports::read_program(path)?, entry)
    }

    /// Checks one entry of a source.
    ///
    /// # Errors
    /// When the source is not a valid program, or has no such entry.
    pub fn check(source: &Arc<Source>, entry: Option<&str>) -> Result<Program> {
        let mut declared = lang::check_entry(source, entry)?;
        let (mut general, fresh) = lang::check_entry_general(source, Some(&declared.name), true)?;
        let (samples, usual) = samples(source, &declared)?;
        let begins = laws::begins(&declared);
        for entry in [&mut declared, &mut general] {
            laws::begin(entry, &begins);
        }
        Ok(Program {
            source: source.clone(),
            samples,
            usual,
            entry: declared,
            begins,
            general,
            fresh: fresh.into_iter().collect(),
        })
    }

    /// Returns the program in the form that the rules rewrite. A length that is a number is a dimension of its own, unless
    /// a rule asks whether numbers divide it.
    ///
    /// # Errors
    /// Never for a program that has been checked.
    pub fn under(mut self, rules: &RuleSet) -> Result<Program> {
        if rules.divides_numbers() {
            let name = Some(self.entry.name.as_str());
            let (mut general, fresh) = lang::check_entry_general(&self.source, name, false)?;
            laws::begin(&mut general, &self.begins);
            (self.general, self.fresh) = (general, fresh.into_iter().collect());
        }
        Ok(self)
    }

    /// Returns the number of components (arrays or scalars) of the result, with tuples flattened.
    pub fn results(&self) -> usize {
        components(&self.entry.body.ty).len()
    }

    /// Returns the program as a closed term, at the given sizes.
    ///
    /// # Errors
    /// When a size has no value or an impossible one, or the program has no closed form yet.
    pub fn elaborate(&self, sizes: &Sizes) -> Result<elaborate::Program> {
        let value = |n: &str| sizes.get(n).and_then(|&v| i64::try_from(v).ok());
        let values: Result<IndexMap<String, u64>> = self
            .fresh
            .iter()
            .map(|(name, size)| {
                let n = size.eval(&value).map_err(|e| {
                    Diagnostic::error(Code::SizeRange, format!("the size `{name}`: {e}"))
                })?;
                Ok((name.clone(), n.unsigned_abs()))
            })
            .collect();
        self.placed(elaborate(&self.general, &values?))
    }

    /// Sets this program's source in diagnostics that have spans but no source.
    ///
    /// # Errors
    /// Those of `result`.
    pub fn placed<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|Failure(mut ds)| {
            for d in &mut ds {
                if d.source.is_none() && !d.labels.is_empty() {
                    d.source = Some(self.source.clone());
                }
            }
            Failure(ds)
        })
    }

    /// Points a diagnostic about the program's term at the entry, unless it has a place.
    pub(super) fn at_entry(&self, d: Diagnostic) -> Diagnostic {
        if d.labels.is_empty() {
            d.at(&self.source, self.entry.span, "")
        } else {
            Diagnostic { source: d.source.clone().or_else(|| Some(self.source.clone())), ..d }
        }
    }

    /// Returns the parameters whose data are neither given nor described in the program's comment.
    pub fn without_data(&self, given: &[&str]) -> Vec<&str> {
        let described = |name: &str| {
            self.samples.keys().any(|key| key.split('.').next().unwrap_or(key) == name)
        };
        let names = self.entry.params.iter().map(|p| p.name.as_str());
        names.filter(|name| !given.contains(name) && !described(name)).collect()
    }

    /// Tests the operators of reductions for the laws that their patterns rely on. Returns warnings for operators that
    /// could not be tested because no values were found.
    ///
    /// # Errors
    /// [`Code::OperatorLaw`] with a counterexample for each operator that breaks one.
    pub fn check_laws(&self, sizes: &Sizes) -> Result<Vec<Diagnostic>> {
        let found = laws_of(&self.source, &self.entry, sizes);
        let broken = |d: &&Diagnostic| d.severity == Severity::Error;
        let errors: Vec<Diagnostic> = found.iter().filter(broken).cloned().collect();
        if errors.is_empty() { Ok(found) } else { Err(errors.into()) }
    }

    /// Returns a short hash of the entry for the tuning store. Comments, layout and other entries do not affect it.
    pub fn hash(&self) -> String {
        // Hashes the typed core without its spans, since they depend on the layout. The closed term is no alternative:
        // it exists only at given sizes.
        let mut entry = Entry { doc: String::new(), shown: vec![], ..self.general.clone() };
        entry.params.iter_mut().for_each(|p| p.labels.clear());
        let text = format!("{entry:?}");
        let mut hasher = blake3::Hasher::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("Span {") {
            hasher.update(&rest.as_bytes()[..at]);
            rest = rest[at..].find('}').map_or("", |end| &rest[at + end + 1..]);
        }
        hasher.update(rest.as_bytes());
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// Tries the operators of an entry.
fn laws_of(source: &Arc<Source>, entry: &Entry, sizes: &Sizes) -> Vec<Diagnostic> {
    let mut found = laws::check(entry, sizes);
    found.iter_mut().for_each(|d| d.source = Some(source.clone()));
    found
}

/// Returns the errors of an entry's operators, at any sizes.
pub(super) fn broken_laws(source: &Arc<Source>, entry: &Entry) -> Vec<Diagnostic> {
    let mut entry = entry.clone();
    let begins = laws::begins(&entry);
    laws::begin(&mut entry, &begins);
    let mut found = laws_of(source, &entry, &Sizes::new());
    found.retain(|d| d.severity == Severity::Error);
    found
}

/// Generators by parameter or component, and values of sizes.
type Samples = (IndexMap<String, Generator>, IndexMap<String, (Bound, Span)>);

/// Reads the lines `gen: NAME=HOW ...` that belong to an entry.
pub(super) fn samples(source: &Arc<Source>, entry: &Entry) -> Result<Samples> {
    let (mut out, mut usual) = (IndexMap::new(), IndexMap::new());
    let mut places: IndexMap<String, Span> = IndexMap::new();
    for (word, place) in words(&lang::generators(source, &entry.name)?) {
        let wrong = |text: String| Diagnostic::error(Code::Usage, text).at(source, place, "");
        let Some((name, how)) = word.split_once('=') else {
            return Err(wrong(format!("`{word}` is no `NAME=HOW`")).into());
        };
        let how: Generator = how.parse().map_err(|Failure(ds)| {
            Failure(ds.into_iter().map(|d: Diagnostic| d.at(source, place, "")).collect())
        })?;
        let is_size = entry.sizes.iter().any(|size| size == name);
        let keys = match is_size {
            true => vec![name.to_owned()],
            false => named(entry, name),
        };
        if keys.is_empty() {
            return Err(wrong(format!("`{}` has no parameter `{name}`", entry.name)).into());
        }
        for key in &keys {
            if let Some(first) = places.insert(key.clone(), place) {
                let mut d = wrong(format!("`{name}` is generated in two ways"));
                d.labels.push(Label { span: first, text: "the other one".into(), primary: false });
                return Err(d.into());
            }
        }
        if !is_size {
            out.extend(keys.into_iter().map(|key| (key, how.clone())));
            continue;
        }
        let Generator::Const(value) = how else {
            let text = format!("`{name}` is a size, which `{how}` is no value of");
            return Err(wrong(text).help(format!("write `{name}=const:1000`")).into());
        };
        usual.insert(name.to_owned(), (value, place));
    }
    Ok((out, usual))
}

/// Returns the parameter with this name, or the components with it, as `NAME.K`: one, or all of a field that holds several.
fn named(entry: &Entry, name: &str) -> Vec<String> {
    let (whole, part) = name.split_once('.').unwrap_or((name, "0"));
    let Some(param) = entry.params.iter().find(|p| p.name == whole) else {
        return vec![];
    };
    if whole == name {
        return vec![name.to_owned()];
    }
    let inside = |label: &str| label.strip_prefix(part).is_some_and(|rest| rest.starts_with('.'));
    let found: Vec<usize> = match param.component(part) {
        Some(k) => vec![k],
        None => (0..param.labels.len()).filter(|k| inside(&param.labels[*k])).collect(),
    };
    let count = components(&param.ty).len();
    found.into_iter().filter(|k| *k < count).map(|k| format!("{whole}.{k}")).collect()
}

/// Returns the words of lines, with their places.
fn words(lines: &[Name]) -> Vec<(&str, Span)> {
    let mut words = vec![];
    for line in lines {
        let mut start = 0;
        for word in line.text.split_whitespace() {
            start += line.text.get(start..).and_then(|rest| rest.find(word)).unwrap_or(0);
            let at = line.span.start as usize + start;
            start += word.len();
            words.push((word, Span::new(at, at + word.len())));
        }
    }
    words
}

/// Returns the element type and the dimensions of each component of a type, with tuples flattened from left to right.
pub(super) fn components(ty: &Type) -> Vec<(ScalarType, Vec<Size>)> {
    match ty {
        Type::Scalar(s) => vec![(*s, vec![])],
        Type::Vector(w, s) => vec![(*s, vec![w.clone()])],
        Type::Tuple(ts) => ts.iter().flat_map(components).collect(),
        Type::Array(n, t) => {
            let mut inner = components(t);
            for (_, dims) in &mut inner {
                dims.insert(0, n.clone());
            }
            inner
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Given, Request, inputs};

    fn program(comment: &str) -> Result<Program> {
        let text = format!(
            "-- About f.\n{comment}\nentry f [n][m] (ps: [n](f32, i32)) (c: f32) (is: [m]i32) : [m]f32 =\n  \
             map (* c) (gather (map (\\(a, _) -> a) ps) is)"
        );
        Program::check(&Source::new("f.pat", text), None)
    }

    #[test]
    fn comments_say_how_inputs_are_made_up() {
        let p = program("-- gen: ps.0=uniform:3..4 c=const:2\n-- gen: is=uniform:0..n")
            .expect("the program is well-typed");
        let sizes = Sizes::from([("n".to_owned(), 10), ("m".to_owned(), 500)]);
        let mut request = Request { sizes, default: Some(Generator::Iota), ..Request::default() };
        let bound = inputs::bind(&p, &request).expect("every input can be made up");
        let floats = |name, k| {
            bound
                .inputs
                .get(name, k)
                .expect("the input has this component")
                .to_vec::<f32>()
                .expect("of that type")
        };
        assert!(floats("ps", 0).iter().all(|x| (3.0..4.0).contains(x)));
        assert_eq!(floats("c", 0), [2.0]);
        let ints = |name, k| {
            bound
                .inputs
                .get(name, k)
                .expect("the input has this component")
                .to_vec::<i32>()
                .expect("of that type")
        };
        assert_eq!(ints("ps", 1), (0..10).collect::<Vec<_>>());
        assert_eq!(ints("is", 0).iter().max(), Some(&9));
        // A given value takes precedence over the comment.
        request.values.insert("c".to_owned(), Given::Text("5".to_owned()));
        let bound = inputs::bind(&p, &request).expect("every input can be made up");
        assert_eq!(
            bound
                .inputs
                .get("c", 0)
                .expect("the input has this component")
                .to_vec::<f32>()
                .expect("of that type"),
            [5.0]
        );
        // Without a default generator, only what the comment names is generated.
        request.default = None;
        let missing = inputs::bind(&p, &request).unwrap_err();
        assert_eq!(missing.0[0].code, Code::InputMissing);
        assert!(missing.0[0].message.contains("`ps`"), "{missing}");
        let whole = program("-- gen: ps.0=normal ps.1=sorted:0..m c=const:n/2 is=whole:0..n - 1");
        assert!(whole.is_err(), "a size contains no spaces");
        let whole = program("-- gen: ps.0=normal ps.1=sorted:0..m c=const:n/2 is=whole:0..(n-1)*1")
            .expect("the program is well-typed");
        request.values.clear();
        let bound = inputs::bind(&whole, &request).expect("every input can be made up");
        let c = bound.inputs.get("c", 0).expect("the input has this component");
        assert_eq!(c.to_vec::<f32>().expect("of that type"), [5.0]);
    }

    #[test]
    fn comments_give_sizes_that_nothing_else_does() {
        let sizes = |comment: &str, given: &[(&str, u64)]| {
            let sizes = given.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
            let request = Request { sizes, default: Some(Generator::Iota), ..Request::default() };
            inputs::sizes(&program(comment)?, &request)
        };
        let both = "-- gen: m=const:2*n n=const:30";
        let all = |comment, given: &[(&str, u64)]| {
            sizes(comment, given).expect("sizes").into_values().collect::<Vec<_>>()
        };
        assert_eq!(all(both, &[]), [30, 60]);
        assert_eq!(all(both, &[("n", 4)]), [4, 8]);
        assert_eq!(all(both, &[("m", 4)]), [30, 4]);
        for (comment, words) in [
            ("-- gen: n=const:30", "`m`"),
            ("-- gen: n=const:-1 m=const:1", "`n` would be -1"),
            ("-- gen: n=const:k m=const:1", "`k` is neither"),
            ("-- gen: n=whole:0..3", "`n` is a size"),
        ] {
            let error = sizes(comment, &[]).unwrap_err();
            assert!(error.0[0].message.contains(words), "{error}");
        }
    }

    #[test]
    fn lines_may_stand_anywhere_in_a_file_with_one_entry() {
        let of = |text: &str| {
            let (_, found) = crate::session::check(&Source::new("f.pat", text), false);
            let program = Program::check(&Source::new("f.pat", text), Some("f"))?;
            Ok::<_, Failure>((program.samples.len() + program.usual.len(), found.len()))
        };
        let one = "-- What it does.\n-- gen: n=const:9\n\n-- gen: ps.x=iota\ntype p = {x: f32, y: f32}\n\
            -- gen: ps.y=normal\ndef g (x: f32) = x -- a function\n-- gen: c=const:1\n\n\
            entry f [n] (ps: [n]p) (c: f32) : [n]f32 =\n  -- gen: c.0=const:2\n  map (\\p -> c * g p.x) ps\n";
        assert_eq!(of(&one.replace("c.0=", "ps=")).expect("a program"), (5, 0));
        assert!(of(&format!("{one}-- gen: c=const:1\n")).is_err(), "given twice");
        // A field that holds several components is generated as a whole.
        let pairs = "type q = {c: (f32, f32), r: f32}\n-- gen: qs.c=iota qs.r=normal n=const:3\n\
            entry f [n] (qs: [n]q) : [n]f32 = map (\\q -> q.c.0 + q.r) qs\n";
        assert_eq!(of(pairs).expect("a program"), (4, 0));
        assert!(of(&pairs.replace("qs.r=", "qs.c.1=")).is_err(), "given twice");
        // With another entry, the line must be directly above its own.
        let two =
            one.replace("entry f", "-- gen: c=const:3\nentry f") + "entry h (x: f32) : f32 = x\n";
        assert_eq!(of(&two).expect("a program"), (1, 5));
        // Lines of no entry have no effect, at the end of a file either.
        let last = "entry h (x: f32) = x\nentry f (x: f32) = x\n-- gen: x=iota\n";
        assert_eq!(of(last).expect("a program"), (0, 1));
        assert_eq!(of(&last.replace("entry h", "def h")).expect("a program"), (1, 0));
    }

    #[test]
    fn comments_that_say_something_else_are_errors() {
        for (line, word) in [
            ("-- gen: ps", "NAME=HOW"),
            ("-- gen: qs=normal", "no parameter `qs`"),
            ("-- gen: ps.2=normal", "no parameter `ps.2`"),
            ("-- gen: ps=strange", "no generator"),
            ("-- gen: c=iota c=iota", "two ways"),
            ("-- gen: n=const:1\n-- gen: n=const:2", "two ways"),
            ("-- gen: ps.0=iota\n-- gen: ps.0=normal", "two ways"),
        ] {
            let error = program(line).unwrap_err();
            assert_eq!(error.0[0].code, Code::Usage, "{line}");
            assert!(error.0[0].message.contains(word), "{line}: {}", error.0[0].message);
            assert!(!error.0[0].labels.is_empty());
        }
        let other = program("-- generated: no line of ours").expect("the program is well-typed");
        // Comments do not affect the hash.
        assert_eq!(
            other.hash(),
            program("-- gen: c=uniform").expect("the program is well-typed").hash()
        );
    }
}
