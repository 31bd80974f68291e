//! Optimises a program with a rule of one's own, without the command line: `cargo run --example own_rules`.
//!
//! The rule is tested first, as `patsat rules check` tests it: a rule that is not an equality would give wrong kernels.

use patsat::diag::{Failure, Source};
use patsat::rules::RuleSet;
use patsat::rules::check::Check;
use patsat::session::generate::Generator;
use patsat::session::{Program, Request, Session, check_own_rules};

const PROGRAM: &str = "entry last_first [n] (xs: [n]f32) : f32 = reduce (+) 0 (reverse xs)";

const RULE: &str = "\
rule reduce-reverse
  law reassoc
  says \"A reduction by a commutative operator does not depend on the order of its elements.\"
  from \"own work\"
  when commutative op
  rewrite reduce op z . reverse => reduce op z
  example reduce (+) 0.0 . reverse : [4]f32
";

fn main() -> Result<(), Failure> {
    let program = Program::check(&Source::new("last_first.pat", PROGRAM), None)?;
    let mut request = Request { default: Some(Generator::Normal), ..Request::default() };
    request.sizes.insert("n".to_owned(), 1 << 20);

    let mut own = RuleSet::default();
    own.add(&Source::new("own.rules", RULE), "own")?;
    check_own_rules(&own, Check::default())?;

    // Without a device, kernels are ranked by the cost model of a generic CPU.
    let mut session = Session::new()?;
    session.rules.extend(&own);
    let optimized = session.optimize(&program, &request, &mut ())?;

    let applied = optimized.report.rules.get("reduce-reverse").map_or(0, |r| r.applied);
    println!(
        "The rule was applied {applied} times. The best term is\n{}",
        optimized.best.variant.term
    );
    println!("and its kernels are\n{}", optimized.best.variant.plan.source);
    Ok(())
}
