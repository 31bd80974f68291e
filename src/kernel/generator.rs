//! Generates kernels for many terms with the same options: the candidates of a search.
//!
//! Most candidates differ in one of their kernels and share the others, so the kernels that were completed and proved are
//! kept. A kernel is found again whatever the numbers of its buffers are.

use crate::calculus::nesting::check_nesting;
use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic};
use crate::kernel::ir::walk::{Fresh, statements};
use crate::kernel::ir::{Kernel, Mem, Program, Team};
use crate::kernel::lower::{self, Record, Step, Stop};
use crate::kernel::options::Options;
use crate::kernel::passes::together;
use crate::kernel::{passes, verify};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Most statements and expressions of kernels that are kept of each kind: some 100 MB.
const KEPT: usize = 200_000;

/// A kernel whose buffers are numbered in the order in which they first occur, with the lengths of these.
#[derive(Hash)]
struct Numbered {
    kernel: Kernel,
    lengths: Vec<usize>,
}

/// The hash of a kernel: 128 bits, so that different kernels have different ones.
type Key = [u64; 2];

/// What was found out about kernels before.
struct Known<T> {
    kept: Mutex<Kept<T>>,
}

/// What was found out lately, and what was found out or needed before that.
struct Kept<T> {
    now: FxHashMap<Key, T>,
    before: FxHashMap<Key, T>,
    /// Statements and expressions of the kernels in `now`.
    size: usize,
}

/// Generates the kernels of terms.
pub struct Generator<'a> {
    options: &'a Options,
    resolved: Known<Arc<Kernel>>,
    completed: Known<Arc<Kernel>>,
    proved: Known<Result<(), Box<Diagnostic>>>,
}

/// Gathers what is hashed, so that one walk through a kernel gives both halves of its key.
#[derive(Default)]
struct Hashed(Vec<u8>);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher.finish()
    }
}

impl Numbered {
    fn key(&self) -> Key {
        let mut hashed = Hashed::default();
        self.hash(&mut hashed);
        let first = hashed.finish();
        hashed.write_u8(1);
        [first, hashed.finish()]
    }

    /// Number of statements and expressions.
    fn size(&self) -> usize {
        let mut size = 0;
        for s in &self.kernel.body {
            s.visit(&mut |s| {
                size += 1;
                s.exprs(&mut |e| e.visit(&mut |_| size += 1));
            });
        }
        size
    }
}

impl<T: Clone> Kept<T> {
    fn get(&mut self, key: &Key, size: usize) -> Option<T> {
        if let Some(found) = self.now.get(key) {
            return Some(found.clone());
        }
        let found = self.before.remove(key)?;
        self.insert(*key, found.clone(), size);
        Some(found)
    }

    fn insert(&mut self, key: Key, found: T, size: usize) {
        if self.size + size > KEPT / 2 {
            self.before = std::mem::take(&mut self.now);
            self.size = 0;
        }
        if self.now.insert(key, found).is_none() {
            self.size += size;
        }
    }
}

impl<T: Clone> Known<T> {
    fn new() -> Known<T> {
        let (now, before) = (FxHashMap::default(), FxHashMap::default());
        Known { kept: Mutex::new(Kept { now, before, size: 0 }) }
    }

    /// Returns what `find` gives for the kernel, or has given before.
    fn of(&self, kernel: Numbered, find: impl FnOnce(Kernel) -> T) -> T {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, size) = (kernel.key(), kernel.size());
        if let Some(found) = kept().get(&key, size) {
            return found;
        }
        let found = find(kernel.kernel);
        kept().insert(key, found.clone(), size);
        found
    }
}

impl Known<Arc<Kernel>> {
    /// Changes a kernel of the program as `pass` does, which must depend on the kernel alone.
    fn apply(&self, program: &mut Program, k: usize, pass: impl FnOnce(&mut Kernel)) {
        if is_single(program) {
            return pass(&mut program.kernels[k]);
        }
        let (numbered, buffers) = numbered(program, k);
        let done = self.of(numbered, |mut kernel| {
            pass(&mut kernel);
            Arc::new(kernel)
        });
        let body = passes::with_memories(&done.body, &|m| match m {
            Mem::Global(b) => Mem::Global(buffers.get_index(b).copied().unwrap_or(b)),
            m => m,
        });
        let name = std::mem::take(&mut program.kernels[k].name);
        let (locals, privates) = (done.locals.clone(), done.privates.clone());
        program.kernels[k] = Kernel { name, locals, privates, body, ..*done };
    }
}

impl Generator<'_> {
    /// A generator that has made nothing yet.
    pub fn new(options: &Options) -> Generator<'_> {
        Generator { options, resolved: Known::new(), completed: Known::new(), proved: Known::new() }
    }

    /// Generates and verifies the kernels of a low-level term `() -> T`, given a value for every size
    /// symbol in it.
    ///
    /// # Errors
    /// When the term is not low-level ([`Code::BadTerm`], [`Code::IllNested`]), when no kernel is
    /// generated for a pattern yet ([`Code::NotYetCompiled`]), when the term exceeds a limit
    /// ([`Code::KernelLimit`]), or when a kernel cannot be proved safe ([`Code::Unproved`]).
    pub fn lower(&self, term: &Term, env: &SizeEnv) -> Result<Program, Box<Diagnostic>> {
        self.lower_counted(term, env).1
    }

    /// As [`Generator::lower`], with the number of statements that were generated, also if no kernels come of them.
    pub fn lower_counted(
        &self,
        term: &Term,
        env: &SizeEnv,
    ) -> (usize, Result<Program, Box<Diagnostic>>) {
        match generated(term, env, self.options, false) {
            Ok((program, host, _)) => {
                let statements = program.kernels.iter().map(|k| statements(&k.body)).sum();
                let made = self.finished(program, host).and_then(|p| self.with_teams(p, env));
                (statements, made)
            }
            Err(d) => (0, Err(d)),
        }
    }

    /// Gives the loops of the host to teams as the values of [`Sym::of_loop`] say.
    ///
    /// # Errors
    /// [`Code::KernelLimit`] if a team cannot run its loop.
    pub fn with_teams(
        &self,
        mut program: Program,
        env: &SizeEnv,
    ) -> Result<Program, Box<Diagnostic>> {
        // Backwards: the numbers of the loops before stay.
        for number in (0..together::loops(&program).len()).rev() {
            let Some(groups) = env.get(&Sym::of_loop(number)) else { continue };
            let most = usize::try_from(*groups).unwrap_or(usize::MAX);
            if !together::run(&mut program, number, most, &self.options.device) {
                let text =
                    format!("no {groups} resident work-groups can run loop {number} of the host");
                return Err(Box::new(Diagnostic::error(Code::KernelLimit, text)));
            }
        }
        verify::teams(&program, &self.options.device)?;
        Ok(program)
    }

    /// Returns the teams that may run the loops of the host of a program: for each loop, in order, the values of its symbol.
    pub fn teams(&self, program: &Program) -> Vec<Vec<u64>> {
        let device = &self.options.device;
        let of_loop = |steps| {
            let mut out: Vec<(u64, Team)> = vec![];
            for most in [1, device.resident_groups] {
                let team = together::team(program, &steps, most, device);
                if let Some(team) = team.filter(|team| out.iter().all(|(_, other)| other != team)) {
                    out.push((most as u64, team));
                }
            }
            out.into_iter().map(|(most, _)| most).collect()
        };
        together::loops(program).into_iter().map(of_loop).collect()
    }

    fn finished(&self, mut program: Program, mut host: Fresh) -> Result<Program, Box<Diagnostic>> {
        let Options { device, relaxed, .. } = self.options;
        for k in 0..program.kernels.len() {
            self.resolved.apply(&mut program, k, passes::resolve);
        }
        passes::begin(&mut program, device, &mut host);
        for k in 0..program.kernels.len() {
            self.completed.apply(&mut program, k, |kernel| {
                let mut fresh = Fresh::after(kernel, &host.reserved);
                passes::complete(kernel, device, *relaxed, &mut fresh);
            });
        }
        passes::end(&mut program);
        for k in 0..program.kernels.len() {
            let staged = passes::with_row_blocks(&program, k, device, &host.reserved);
            if let Some(staged) = staged {
                let plain = std::mem::replace(&mut program.kernels[k], staged);
                if self.prove(&program, k).is_ok() {
                    continue;
                }
                program.kernels[k] = plain;
            }
            self.prove(&program, k)?;
        }
        Ok(program)
    }

    fn prove(&self, program: &Program, k: usize) -> Result<(), Box<Diagnostic>> {
        let of = &program.kernels[k];
        if is_single(program) {
            return verify::kernel(program, of, &self.options.device);
        }
        let proof = |_: Kernel| verify::kernel(program, of, &self.options.device);
        self.proved.of(numbered(program, k).0, proof)
    }
}

/// Whether a program has one kernel: candidates that differ do not share it.
fn is_single(program: &Program) -> bool {
    program.kernels.len() == 1
}

/// Returns a kernel without its name and with its buffers renumbered, and the buffers in their new order.
fn numbered(program: &Program, k: usize) -> (Numbered, IndexSet<usize>) {
    let kernel = &program.kernels[k];
    let mut buffers = IndexSet::new();
    for s in &kernel.body {
        passes::touched(s, &mut |m| {
            if let Mem::Global(b) = m {
                buffers.insert(*b);
            }
        });
    }
    let body = passes::with_memories(&kernel.body, &|m| match m {
        Mem::Global(b) => Mem::Global(buffers.get_index_of(&b).unwrap_or(b)),
        m => m,
    });
    let length = |b: &usize| program.buffers.get(*b).map_or(0, |b| b.array.len);
    let lengths = buffers.iter().map(length).collect();
    let (locals, privates) = (kernel.locals.clone(), kernel.privates.clone());
    let kernel = Kernel { name: String::new(), locals, privates, body, ..*kernel };
    (Numbered { kernel, lengths }, buffers)
}

/// As [`Generator::lower`], for a single term.
///
/// # Errors
/// As for [`Generator::lower`].
pub fn lower(term: &Term, env: &SizeEnv, options: &Options) -> Result<Program, Box<Diagnostic>> {
    Generator::new(options).lower(term, env)
}

/// Generates the kernels without passes. Decisions are recorded if `record` is set.
pub(super) fn lowered(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
    record: bool,
) -> Step<(Program, Fresh, Option<Record>)> {
    lower::program(term, env, options, record.then(Record::default))
}

/// Generates the kernels with arrays in registers. If an index into one does not become constant, the kernel has its arrays
/// in memory; if it is one of a single work-item, so have all kernels. Returns them with what gives names for the host, and
/// with the decisions if `record` is set.
pub(super) fn generated(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
    record: bool,
) -> Result<(Program, Fresh, Option<Record>), Box<Diagnostic>> {
    check_nesting(term)?;
    let program = lowered(term, env, options, record).or_else(|s| match s {
        Stop::Dynamic(_) => lowered(term, env, &options.without_register_arrays(), record),
        s => Err(s),
    });
    match program {
        Ok(generated) => Ok(generated),
        Err(Stop::Error(d)) => Err(d),
        Err(Stop::Elsewhere(t)) => Err(Box::new(Diagnostic::error(
            Code::Internal,
            format!("`{t}` is neither in registers nor in local memory"),
        ))),
        Err(Stop::Dynamic(i)) => Err(Box::new(Diagnostic::error(
            Code::KernelLimit,
            format!("registers are indexed by `{i}`, which is not constant after unrolling"),
        ))),
    }
}
