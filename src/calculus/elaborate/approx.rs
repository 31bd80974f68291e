//! Whether a form of a program may differ from it by rounding.

/// What steps that make a form may do, and whether they did it.
///
/// The forms that hold up to rounding only, such as a loop's sum in another order, stand apart from the others
/// ([`Program::relaxed`](super::Program::relaxed)).
pub(super) struct Approx {
    allowed: bool,
    used: bool,
}

impl Approx {
    pub(super) fn new(allowed: bool) -> Approx {
        Approx { allowed, used: false }
    }

    /// Whether a change that holds up to rounding may be made. The caller then makes it.
    pub(super) fn use_it(&mut self) -> bool {
        self.used |= self.allowed;
        self.allowed
    }

    /// Whether such a change was made.
    pub(super) fn was_used(&self) -> bool {
        self.used
    }
}
