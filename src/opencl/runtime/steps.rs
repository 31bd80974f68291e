//! The steps of the host in a plan: whether they can be done, and how often loops repeat.

use super::prepared::internal;
use crate::diag::Result;
use crate::opencl::host::HostArray;
use crate::opencl::plan::{Control, HostPlan, Role, times_given};

/// Checks that every step refers to something in the plan, since plans may come from files.
pub(super) fn check(steps: &[Control], plan: &HostPlan) -> Result<()> {
    let mut depth = 0usize;
    for step in steps {
        let known = match *step {
            Control::Launch(k) => k < plan.launches.len(),
            Control::Check(b) => {
                depth > 0 && plan.buffers.get(b).is_some_and(|b| b.elem.bytes() == 1 && b.len == 1)
            }
            Control::Swap(a, b) => match (plan.buffers.get(a), plan.buffers.get(b)) {
                (Some(a), Some(b)) => {
                    let own = |b: &Role| matches!(b, Role::Temp | Role::Output(_));
                    own(&a.role) && own(&b.role) && (a.elem, a.len) == (b.elem, b.len)
                }
                _ => false,
            },
            Control::Repeat(_) => {
                depth += 1;
                true
            }
            Control::RepeatGiven { scalar, .. } => {
                depth += 1;
                plan.scalars.get(scalar).is_some_and(|s| s.ty.is_integer())
            }
            Control::End => {
                depth = depth.wrapping_sub(1);
                depth != usize::MAX
            }
        };
        if !known {
            return Err(
                internal(format!("the plan has a step that cannot be done: {step:?}")).into()
            );
        }
    }
    if depth > 0 {
        return Err(internal("the plan has a loop without an end".to_owned()).into());
    }
    Ok(())
}

/// Returns the steps with the numbers of iterations that scalar arguments give.
pub(super) fn given<'a>(
    steps: Vec<Control>,
    scalar: &dyn Fn(usize) -> Result<&'a HostArray>,
) -> Result<Vec<Control>> {
    let given = |step| match step {
        Control::RepeatGiven { scalar: k, plus, less } => {
            let value = scalar(k)?;
            let times = times_given(value.ty(), value.as_int(0).unwrap_or(0), plus, less);
            Ok(Control::Repeat(Some(times)))
        }
        step => Ok(step),
    };
    steps.into_iter().map(given).collect()
}
