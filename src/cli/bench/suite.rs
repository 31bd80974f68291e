//! `patsat bench --suite`: times the programs of a list, and prints a table in Markdown.

use super::{Args, interrupted, result, shared};
use crate::cli::args::{program, source};
use crate::cli::interrupt;
use crate::cli::out::{Done, Out, Stop};
use crate::cli::progress::{Progress, micros};
use crate::cli::report::{date, gb_per_s, gflops, sizes};
use crate::cli::size::size;
use crate::diag::{Code, Diagnostic, Interrupt, Result, Source};
use crate::session::generate::Generator;
use crate::session::{Bench, Session};
use std::path::Path;
use std::time::SystemTime;

/// A line of a list: a program, and values of its sizes.
type Wanted = (String, Vec<(String, u64)>);

pub fn main(list: &Path, args: &Args, out: &mut Out) -> Done {
    let list = source(list)?;
    let wanted = wanted(&list)?;
    let session = args.session.session()?;
    let (device, choice) = session.target()?;
    let peak = choice.model.compute.f32_gflops;
    let interrupt = interrupt::listen()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    out.line(&format!(
        "{}, {} compute units, driver {}; {}; patsat {}, `--float {} --budget {}`; peak of `f32`: {peak:.0} GFLOP/s \
         (cost model `{}`)\n\n\
         | program | sizes | time | spread | data | of bandwidth | arithmetic | of `f32` peak |\n\
         |---|---|---|---|---|---|---|---|",
        device.label(),
        device.compute_units,
        device.driver,
        date(now),
        env!("CARGO_PKG_VERSION"),
        session.float.name(),
        args.session.budget(),
        choice.model.name,
    ))?;
    let mut failed = None;
    for (file, given) in wanted {
        match one(&session, &file, &given, (args, &interrupt), out) {
            Ok(bench) => {
                out.line(&row(&bench, peak))?;
                out.event("result", result(&bench))?;
                if bench.interrupted {
                    return interrupted(&session, out);
                }
            }
            Err(failure) if failure.0.iter().any(|d| d.code == Code::Interrupted) => {
                return Err(failure.into());
            }
            // The others are timed nevertheless.
            Err(failure) => {
                out.failure(&failure)?;
                let code = failure.0.first().map_or("", |d| d.code.as_str());
                let given: Vec<_> = given.iter().map(|(name, n)| format!("{name}={n}")).collect();
                out.line(&format!("| `{file}` | {} | {code} | | | | | |", given.join(" ")))?;
                failed.get_or_insert(failure.exit());
            }
        }
        out.flush()?;
    }
    failed.map_or(Ok(()), |exit| Err(Stop::Exit(exit)))
}

/// Reads a list: a program in each line, and values of its sizes.
fn wanted(list: &Source) -> Result<Vec<Wanted>> {
    let line = |(i, text): (usize, &str)| -> Option<Result<Wanted>> {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let mut words = text.split_whitespace();
        let file = words.next()?.to_owned();
        let sizes = words.map(size).collect::<std::result::Result<_, _>>();
        let said = |e| {
            Diagnostic::error(Code::Usage, format!("{}, line {}: {e}", list.name, i + 1)).into()
        };
        Some(sizes.map(|sizes| (file, sizes)).map_err(said))
    };
    list.text.lines().enumerate().filter_map(line).collect()
}

/// Times one program.
fn one(
    session: &Session,
    file: &str,
    given: &[(String, u64)],
    (args, interrupt): (&Args, &Interrupt),
    out: &Out,
) -> Result<Bench> {
    let program = program(file, &session.rules)?;
    let mut data = shared(&args.data, &program);
    data.sizes.retain(|(name, _)| given.iter().all(|(own, _)| own != name));
    data.sizes.extend(given.iter().map(|(name, n)| (name.clone(), vec![*n])));
    let request = data.request(&program, Some(Generator::Normal))?;
    let mut progress = Progress::new(out, interrupt.clone(), program.entry.name.clone());
    let bench = session.bench(&program, &request, |_, _, _| Ok(vec![]), &[], &mut progress);
    progress.finish();
    bench
}

/// Returns the row of a program. The larger share says how near the program is to what the device allows, and is bold.
fn row(b: &Bench, peak: f64) -> String {
    let timed = b.own.outcome.as_ref();
    let (us, spread) = timed.map_or((f64::NAN, f64::NAN), |s| (s.median_us, s.spread_us));
    let limits = [&b.copy, &b.read].into_iter().flatten().filter_map(|y| y.gb_per_s);
    let bandwidth = limits.fold(f64::NAN, f64::max);
    let rates = [gb_per_s(b.work.bytes, us), gflops(b.work.flops, us)];
    let shares = [rates[0] / bandwidth, rates[1] / peak];
    let share = |i: usize| match 100.0 * shares[i] {
        percent if percent.is_nan() => String::new(),
        percent if shares[1 - i] > shares[i] => format!("{percent:.1}%"),
        percent => format!("**{percent:.1}%**"),
    };
    format!(
        "| `{}` | {} | {} | {} | {:.2} GB/s | {} | {:.2} GFLOP/s | {} |",
        b.file,
        sizes(&b.sizes),
        micros(us),
        micros(spread),
        rates[0],
        share(0),
        rates[1],
        share(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_programs_and_sizes() {
        let read = |text: &str| wanted(&Source::new("list", text));
        let all = read("# CPU\n\na.pat n=4Ki m=3 # tall\nb.pat:f\n").expect("a list");
        let sizes = vec![("n".to_owned(), 4096), ("m".to_owned(), 3)];
        assert_eq!(all, [("a.pat".to_owned(), sizes), ("b.pat:f".to_owned(), vec![])]);
        let wrong = read("a.pat\nb.pat n=x\n").expect_err("no size");
        assert!(wrong.0[0].to_string().contains("list, line 2: `x` is not a size"), "{wrong:?}");
    }
}
