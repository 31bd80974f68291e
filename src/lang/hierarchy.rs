//! The rules of the device hierarchy: what may stand where, on every path through a program from the outside in.
//!
//! An operator that the hierarchy restricts is a [`Step`]. [`Place::enter`] gives the place of the functions of
//! such an operator, or the [`Rule`] that it breaks. Every part of the compiler takes the rules from here: the
//! checker applies them to typed programs, `calculus::nesting` to terms, and extraction to e-nodes. Extraction
//! also decides which of the legal places it considers.

use std::fmt;

/// The level of the device's hierarchy at which code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Outside any kernel: a chain of stages, each a kernel.
    Host,
    /// In a work-group, outside its work-items.
    Group,
    /// In a warp of a work-group, outside its lanes.
    Warp,
    /// In one work-item.
    Item,
}

/// What an operator asks of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A map over global work-items of this dimension.
    Glb(u8),
    /// A map over work-groups of this dimension.
    Wrg(u8),
    /// A map over the work-items of a group, of this dimension.
    Lcl(u8),
    /// A map over the warps of a group.
    Warp,
    /// A map over the lanes of a warp.
    Lane,
    /// A loop inside a kernel: a sequential map, reduction or scan. Outside kernels it is a kernel of one
    /// work-item.
    Loop,
    /// A loop over a state. Outside kernels the host runs it.
    Repeat,
    /// A choice between two functions.
    Choice,
    /// A reduction or scan by all work-items of a group.
    Together,
    /// An update of elements at computed places. A work-group makes it in its memory.
    Update,
    /// Values that are combined by bin. A work-group has the bins in its memory.
    Bins,
    /// A result in the memory of the work-group.
    Local,
}

/// A rule of the hierarchy that an operator breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Dimensions are 0, 1 and 2.
    Dimension,
    /// `mapWrg` is outside all maps over work-items.
    GroupInItems,
    /// `mapGlb` is outside all work-groups.
    GlobalInGroup,
    /// `mapLcl` is inside `mapWrg`.
    LocalOutside,
    /// `mapLcl` is outside `mapWarp`.
    LocalInWarp,
    /// `mapWarp` is inside `mapWrg`.
    WarpOutside,
    /// `mapWarp` is outside `mapLcl`.
    WarpInLocal,
    /// `mapLane` is inside `mapWarp`.
    LaneOutside,
    /// No dimension of one kind, and neither warps nor lanes, occur twice.
    Twice,
    /// Only views stand between two dimensions of one kind.
    Between,
    /// No parallel map is inside a loop that is outside kernels.
    InSingle,
    /// `toLocal` is inside `mapWrg`.
    MemoryOutside,
    /// `toLocal` is outside `mapLcl`.
    MemoryInLocal,
    /// `toLocal` is outside `mapLane`.
    MemoryInLane,
    /// A reduction by a group is in a group, outside its work-items.
    TogetherOutside,
    /// A loop over a state is not between the lanes of a warp.
    RepeatInWarp,
    /// A choice is not between the lanes of a warp.
    ChoiceInWarp,
    /// An update of elements at computed places is not between the lanes of a warp.
    UpdateInWarp,
}

/// A place on a path: what the operators around it leave free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The level at which code runs here.
    pub level: Level,
    /// A bit for each dimension of each kind, for warps and for lanes that the maps around the place share out.
    used: u16,
    /// Whether the place is directly inside a map over a dimension, so that the next dimension may follow.
    open: bool,
}

const ALL_WRG: u16 = 0b111;
const ALL_LCL: u16 = 0b111 << 3;
const ALL_GLB: u16 = 0b111 << 6;
const WARPS: u16 = 1 << 9;

/// Returns the bit of a parallel map in [`Place::used`]; 0 for other operators and dimensions above 2.
fn bit(step: Step) -> u16 {
    match step {
        Step::Wrg(d @ 0..=2) => 1 << d,
        Step::Lcl(d @ 0..=2) => 1 << (3 + d),
        Step::Glb(d @ 0..=2) => 1 << (6 + d),
        Step::Warp => WARPS,
        Step::Lane => 1 << 10,
        _ => 0,
    }
}

impl Step {
    /// Whether the operator is a parallel map.
    pub fn is_parallel(self) -> bool {
        matches!(self, Step::Glb(_) | Step::Wrg(_) | Step::Lcl(_) | Step::Warp | Step::Lane)
    }

    /// Whether two operators are maps over dimensions of one kind, which may be nested directly.
    pub fn is_akin(self, other: Step) -> bool {
        matches!(
            (self, other),
            (Step::Glb(_), Step::Glb(_))
                | (Step::Wrg(_), Step::Wrg(_))
                | (Step::Lcl(_), Step::Lcl(_))
        )
    }
}

impl Place {
    /// The place of a whole program.
    pub const PROGRAM: Place = Place { level: Level::Host, used: 0, open: false };

    /// Returns the place of the functions of an operator that stands here.
    ///
    /// # Errors
    /// The rule that the operator breaks.
    pub fn enter(self, step: Step) -> Result<Place, Rule> {
        match step {
            Step::Glb(_) | Step::Wrg(_) | Step::Lcl(_) | Step::Warp | Step::Lane => {
                self.share(step)
            }
            Step::Loop if self.level == Level::Host => Ok(self.item()),
            Step::Loop => Ok(self.settled()),
            Step::Repeat if self.level == Level::Warp => Err(Rule::RepeatInWarp),
            Step::Choice if self.level == Level::Warp => Err(Rule::ChoiceInWarp),
            Step::Update | Step::Bins if self.level == Level::Warp => Err(Rule::UpdateInWarp),
            Step::Bins if self.level == Level::Group => Ok(self.item()),
            Step::Repeat | Step::Choice | Step::Update | Step::Bins => Ok(self.settled()),
            Step::Together if self.level != Level::Group => Err(Rule::TogetherOutside),
            Step::Together => Ok(self.item()),
            Step::Local if self.used & ALL_WRG == 0 => Err(Rule::MemoryOutside),
            Step::Local if self.used & ALL_LCL != 0 => Err(Rule::MemoryInLocal),
            Step::Local if self.level == Level::Item => Err(Rule::MemoryInLane),
            Step::Local => Ok(self),
        }
    }

    /// Returns the place of the function of a parallel map.
    fn share(self, step: Step) -> Result<Place, Rule> {
        let uses = |bits| self.used & bits != 0;
        if step.is_akin(step) && bit(step) == 0 {
            return Err(Rule::Dimension);
        }
        match step {
            Step::Wrg(_) if uses(ALL_LCL | ALL_GLB | WARPS) => return Err(Rule::GroupInItems),
            Step::Glb(_) if uses(ALL_WRG) => return Err(Rule::GlobalInGroup),
            Step::Lcl(_) if !uses(ALL_WRG) => return Err(Rule::LocalOutside),
            Step::Lcl(_) if uses(WARPS) => return Err(Rule::LocalInWarp),
            Step::Warp if !uses(ALL_WRG) => return Err(Rule::WarpOutside),
            Step::Warp if uses(ALL_LCL) => return Err(Rule::WarpInLocal),
            Step::Lane if !uses(WARPS) => return Err(Rule::LaneOutside),
            _ if uses(bit(step)) => return Err(Rule::Twice),
            _ => {}
        }
        let (from, level, next) = match step {
            Step::Wrg(_) => (Level::Host, Level::Group, uses(ALL_WRG)),
            Step::Glb(_) => (Level::Host, Level::Item, uses(ALL_GLB)),
            Step::Warp => (Level::Group, Level::Warp, false),
            Step::Lane => (Level::Warp, Level::Item, false),
            _ => (Level::Group, Level::Item, uses(ALL_LCL)),
        };
        if next && !self.open {
            return Err(Rule::Between);
        }
        if !next && self.level != from {
            return Err(Rule::InSingle);
        }
        let open = !matches!(step, Step::Warp | Step::Lane);
        Ok(Place { level, used: self.used | bit(step), open })
    }

    /// Returns the same place beside a computation: no further dimension of a nest may follow.
    #[must_use]
    pub fn settled(self) -> Place {
        Place { open: false, ..self }
    }

    /// Returns the place of one work-item that runs here.
    #[must_use]
    pub fn item(self) -> Place {
        Place { level: Level::Item, open: false, ..self }
    }

    /// Whether a parallel map is around the place.
    pub fn is_inside(self, step: Step) -> bool {
        self.used & bit(step) != 0
    }

    /// Whether the place is directly inside a map over the third dimension, and inside no other map.
    pub fn is_in_batch(self) -> bool {
        self.open && [bit(Step::Wrg(2)), bit(Step::Glb(2))].contains(&self.used)
    }
}

impl Rule {
    /// Whether an operator that breaks the rule breaks it because of this map around it.
    pub fn blames(self, step: Step, around: Step) -> bool {
        match self {
            Rule::GroupInItems => matches!(around, Step::Glb(_) | Step::Lcl(_) | Step::Warp),
            Rule::GlobalInGroup => matches!(around, Step::Wrg(_)),
            Rule::LocalOutside | Rule::WarpOutside | Rule::MemoryOutside => {
                matches!(around, Step::Glb(_))
            }
            Rule::LocalInWarp => around == Step::Warp,
            Rule::WarpInLocal => matches!(around, Step::Lcl(_)),
            Rule::MemoryInLocal => matches!(around, Step::Lcl(_)),
            Rule::MemoryInLane => around == Step::Lane,
            Rule::Twice => around == step,
            Rule::Between => around.is_akin(step),
            Rule::Dimension
            | Rule::LaneOutside
            | Rule::InSingle
            | Rule::TogetherOutside
            | Rule::RepeatInWarp
            | Rule::ChoiceInWarp
            | Rule::UpdateInWarp => false,
        }
    }

    /// Returns advice for an operator that breaks the rule.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::Dimension => "dimensions are 0, 1 and 2",
            Rule::GroupInItems => "work-groups are outermost",
            Rule::GlobalInGroup => "inside `mapWrg`, distribute over the work-group with `mapLcl`",
            Rule::LocalOutside => "put it inside the function of a `mapWrg`, or use `mapGlb`",
            Rule::LocalInWarp => "distribute over a warp with `mapLane`",
            Rule::WarpOutside => "put it inside the function of a `mapWrg`",
            Rule::WarpInLocal => "use either warps or local work-items",
            Rule::LaneOutside => "put it inside the function of a `mapWarp`",
            Rule::Twice => {
                "a dimension (or level) distributes once on a path: use another one, or `mapSeq`"
            }
            Rule::Between => {
                "put one directly inside the other: only views may stand between two dimensions"
            }
            Rule::InSingle => "put the loop inside the function of the parallel map",
            Rule::MemoryOutside => {
                "local memory belongs to a work-group: put it inside the function of a `mapWrg`"
            }
            Rule::MemoryInLocal | Rule::MemoryInLane => {
                "local memory belongs to a work-group: a work-item has `toPrivate`"
            }
            Rule::TogetherOutside => "put it inside the function of a `mapWrg`",
            Rule::RepeatInWarp | Rule::ChoiceInWarp | Rule::UpdateInWarp => {
                "put it inside the function of `mapLcl` or `mapLane`"
            }
        }
    }
}

/// What is wrong with the place of an operator, as a continuation of its name.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Dimension => "of a dimension that does not exist",
            Rule::GroupInItems => "inside a map over work-items",
            Rule::GlobalInGroup => "inside a work-group",
            Rule::LocalOutside | Rule::WarpOutside => "outside `mapWrg`",
            Rule::LocalInWarp => "inside `mapWarp`",
            Rule::WarpInLocal | Rule::MemoryInLocal => "inside `mapLcl`",
            Rule::LaneOutside => "outside `mapWarp`",
            Rule::Twice => "inside itself",
            Rule::Between => "inside another dimension, with a computation between them",
            Rule::InSingle => "inside a loop that is outside kernels",
            Rule::MemoryOutside => "that no `mapWrg` encloses",
            Rule::MemoryInLane => "inside `mapLane`",
            Rule::TogetherOutside => "that is not in a work-group, outside its work-items",
            Rule::RepeatInWarp | Rule::ChoiceInWarp | Rule::UpdateInWarp => {
                "in a warp, outside its lanes"
            }
        })
    }
}
