//! Whether a form of a program may differ from it by rounding.

/// What steps that make a form may do, and whether they would.
///
/// The forms that hold up to rounding only, such as a loop's sum in another order, stand apart from the others
/// ([`Program::relaxed`](super::Program::relaxed)).
pub(super) struct Approx {
    allowed: bool,
    wanted: bool,
}

impl Approx {
    pub(super) fn new(allowed: bool) -> Approx {
        Approx { allowed, wanted: false }
    }

    /// Whether a change that holds up to rounding may be made. The caller then makes it.
    pub(super) fn use_it(&mut self) -> bool {
        self.wanted = true;
        self.allowed
    }

    /// Whether such a change was made, or would have been made.
    pub(super) fn was_wanted(&self) -> bool {
        self.wanted
    }
}
