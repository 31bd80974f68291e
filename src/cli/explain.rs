//! `patsat explain`

use super::args::{DataArgs, SessionArgs, program};
use super::interrupt::Interrupt;
use super::out::{Done, Out, Stop};
use super::progress::Progress;
use super::report::sizes;
use crate::saturate::explain::{Direction, Step};
use crate::session::Explained;
use crate::session::generate::Generator;
use serde_json::json;

/// What to explain.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Explain this term instead of the best one.
    #[arg(long, value_name = "TEXT")]
    term: Option<String>,
    /// Evaluate every step in the interpreter, on random inputs at small sizes.
    #[arg(long)]
    check: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut session = args.session.session()?;
    if args.session.device.is_none() {
        session.device = crate::session::Device::None;
    }
    let program = program(&args.program)?;
    let request = args.data.request(Some(Generator::Normal))?;
    let interrupt = Interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    let explained = session.explain(&program, &request, args.term.as_deref(), &mut progress);
    progress.finish();
    let explained = explained?;
    text(&explained, out)?;
    if args.check {
        let r = crate::session::replay(&program, &request, &explained.derivation)?;
        for (i, s) in r.steps.iter().enumerate() {
            out.line(&format!("{} {} {}", i + 1, s.ok, s.says))?;
        }
        for r in &r.rounds {
            out.line(&format!("{r:?}"))?;
        }
    }
    Ok(())
}

fn text(e: &Explained, out: &mut Out) -> Done {
    out.line(&format!("{} {} ({})", e.entry, sizes(&e.sizes), e.file))?;
    out.line(&format!("{}", e.derivation.start))?;
    for (i, s) in e.derivation.steps.iter().enumerate() {
        out.line("")?;
        step(i + 1, s, out)?;
    }
    Ok(())
}

fn step(number: usize, s: &Step, out: &mut Out) -> Done {
    let direction = match s.direction {
        Direction::Forwards => "",
        Direction::Backwards => ", backwards",
    };
    out.line(&format!(
        "{number}. {} ({}{direction}) {}",
        s.rule,
        s.law,
        if s.holds() { "" } else { "FAILS" }
    ))?;
    out.line(&format!("   {}", s.says))?;
    out.line(&format!("   {}", s.place))?;
    for v in &s.conditions {
        out.line(&format!("    {} {}: {}", v.condition, v.holds, v.values))?;
    }
    out.line(&format!("   - {}", s.before.marked("«", "»")))?;
    out.line(&format!("   + {}", s.after.marked("«", "»")))
}
