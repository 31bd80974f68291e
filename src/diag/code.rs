//! The registry of diagnostic codes. A code never changes its meaning.

use std::fmt;

macro_rules! exits {
    ($($variant:ident = $status:literal $text:literal $(($more:literal))?;)*) => {
        /// Exit statuses of commands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Exit { $(#[doc = concat!($text, "." $(, " ", $more)?)] $variant = $status,)* }

        impl Exit {
            /// Every exit status of a command that fails, in order.
            pub const ALL: &'static [Exit] = &[$(Exit::$variant,)*];

            /// What the status says, without a full stop.
            pub fn meaning(self) -> &'static str { match self { $(Exit::$variant => $text,)* } }
        }
    };
}

exits! {
    Check = 1 "a check came out negative" ("A wrong result, or an unformatted file.");
    Usage = 2 "usage" ("This is clap's own status.");
    Program = 3 "the program (or a rule, or a cost model) is wrong";
    Data = 4 "the input data are missing or wrong";
    NoDevice = 5 "no such device";
    Device = 6 "the device or its driver failed";
    Limitation = 7 "a limitation" ("The request is correct, and patsat cannot fulfil it.");
    Store = 8 "the tuning store";
    Io = 9 "a file cannot be read or written";
    Internal = 70 "a bug in patsat";
    Interrupted = 130 "interrupted";
}

macro_rules! codes {
    ($($variant:ident $text:literal $exit:ident $doc:literal;)*) => {
        /// A stable diagnostic code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $doc] $variant,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The printed form, such as `E0101`.
            pub fn as_str(self) -> &'static str { match self { $(Code::$variant => $text,)* } }

            /// One sentence: what it means.
            pub fn meaning(self) -> &'static str { match self { $(Code::$variant => $doc,)* } }

            /// The exit status it leads to.
            pub fn exit(self) -> Exit { match self { $(Code::$variant => Exit::$exit,)* } }
        }
    };
}

codes! {
    Lex "E0101" Program "A character or literal that the language does not have.";
    Parse "E0102" Program "The text does not follow the grammar.";
    BadExpectation "E0106" Program "An expectation in a program's comments that does not follow the grammar.";
    NoEffect "W0107" Check "Something in a program that has no effect.";
    UnknownName "E0201" Program "A name that nothing defines.";
    DuplicateName "E0202" Program "Two definitions of one name.";
    Recursion "E0203" Program "A definition that mentions itself; definitions are inlined.";
    NoEntry "E0204" Program "The file has no such entry.";
    TypeMismatch "E0301" Program "An expression has another type than its place asks for.";
    SizeMismatch "E0302" Program "Two lengths that must be equal are not.";
    NotDivisible "E0303" Program "A length that a chunk, window or factor does not divide.";
    Arity "E0304" Program "Too many or too few arguments.";
    Ambiguous "E0305" Program "A type or size that nothing determines.";
    IllNested "E0306" Program "A low-level pattern where the device hierarchy does not allow it.";
    BadTerm "E0307" Program "A low-level term that is not well-formed.";
    SizeUnknown "E0308" Data "A size without a value.";
    SizeRange "E0309" Program "A size that is negative, overflows, or exceeds the device's memory.";
    OperatorLaw "E0310" Program "An operator that breaks a law its pattern relies on.";
    OperatorUntested "W0311" Limitation "An operator that no values were found to test its laws on.";
    RuleParse "E0401" Program "A rule file that does not follow the grammar.";
    RuleType "E0402" Program "A rule whose sides do not type-check or differ in type.";
    RuleUnbound "E0403" Program "A rule whose right side mentions what its left side does not bind.";
    RuleUnsound "E0404" Program "A rule that is not an equality: its sides differ in value, or it merged two types.";
    RuleLint "E0405" Program "A rule that breaks the rule discipline.";
    StepFails "E0406" Check "A step of a derivation that does not hold.";
    RuleUntested "E0407" Program "A rule of which no instance can be made, so that it is not tested.";
    RuleAdvice "W0408" Check "Something about a rule that its author should look at.";
    CostModel "E0451" Program "A cost model that cannot be read.";
    InputMissing "E0501" Data "An input that no value was given for.";
    InputFormat "E0502" Data "A file that holds no readable .npy array, or no readable values of Futhark.";
    InputShape "E0503" Data "An input with another shape than its parameter.";
    InputType "E0504" Data "An input with another element type than its parameter.";
    NotFinite "W0506" Data "Input data that hold NaN or infinity; they are used as they are.";
    Eval "E0505" Data "The program has no value on these inputs.";
    NoOpenCl "E0601" NoDevice "No OpenCL loader or platform is installed.";
    UnknownDevice "E0602" NoDevice "No device of that name or number.";
    DeviceMemory "E0603" Device "The program needs more memory than the device has.";
    Driver "E0604" Device "The device's driver reported an error.";
    BuildFailed "E0605" Device "The driver did not build a kernel.";
    KernelTimeout "E0606" Device "A kernel did not end in its time.";
    KernelCrash "E0607" Device "A kernel took its process down.";
    NoCandidate "E0608" Device "No candidate kernel survived building, checking and timing.";
    WrongResult "E0609" Check "A kernel's result differs from the reference.";
    NotYetCompiled "E0701" Limitation "What the interpreter runs but no kernel is generated for yet.";
    NoTerm "E0702" Limitation "No legal low-level term was found for the program.";
    NotSaturated "W0703" Limitation "Saturation stopped at a limit.";
    KernelLimit "E0704" Limitation "A term that needs more than the device or the code generator offers.";
    DeviceType "E0707" Limitation "An element type that the program uses and the device does not offer.";
    NoMemory "E0709" Limitation "The system gives patsat too little memory, or too few threads.";
    Unproved "E0708" Limitation "A kernel that is not proved to keep inside its arrays, or to be free of races.";
    NotDerived "E0705" Limitation "No derivation of a term from the program was found.";
    Cut "W0706" Limitation "Only a part of what there is is shown.";
    StoreLocked "E0801" Store "Another process holds the tuning store.";
    StoreCorrupt "E0802" Store "The tuning store is not a readable database.";
    StoreVersion "E0803" Store "The tuning store was written by a newer version.";
    StoreFailed "E0804" Store "The tuning store could not be read or written.";
    StoreImport "E0805" Store "A file that is no export of a tuning store.";
    NothingStored "E0806" Store "The tuning store has nothing of what was asked for.";
    StoreUnwritable "E0807" Store "The tuning store cannot be written: the disk is full, or it is read-only.";
    NotStored "W0808" Store "Measurements are not kept: the tuning store cannot be written.";
    Unverified "W0809" Check "Imported kernels that do not compute the program; they are not used.";
    Io "E0901" Io "A file could not be read or written.";
    Unformatted "E0902" Check "A file is not formatted.";
    Outdated "E0904" Check "A generated file that is out of date.";
    BadPlan "E0905" Program "A plan that does not follow its layout, or whose term is none of its program.";
    PlanDated "W0907" Check "A plan that was made in other circumstances; its kernels are right all the same.";
    Usage "E0903" Usage "Arguments that do not go together.";
    Unexpected "E0906" Check "An expectation in a program's comments does not hold.";
    Slower "E0909" Check "Kernels that are slower than others by more than a limit.";
    WouldReplace "E0908" Io "An output that would replace an input or a file of another kind.";
    BadConfig "E0911" Usage "A `patsat.toml` that cannot be read, or has a key or a value that no option has.";
    Interrupted "E0910" Interrupted "Interrupted; what was measured is kept.";
    Internal "E0999" Internal "A bug in patsat.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn codes_are_unique() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
    }
}
