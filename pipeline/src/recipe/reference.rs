//! What describes a function or type of a recipe: [`super::api`] has these beside what it registers, [`super::docs`] makes the
//! reference of them.

/// A function of a recipe, or a method of one of its types.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The ways to call it: `name(argument: Type) -> Type`, the types as definitions for editors name them.
    pub signatures: &'static [&'static str],
    /// How it is written, for messages; a method has none.
    pub usage: &'static str,
    /// What it does, as Markdown.
    pub text: &'static str,
    /// The structures that its options are decoded to.
    pub options: &'static [&'static str],
    /// Members of the map that it returns; none where they are not listed.
    pub gives: &'static [Member],
}

/// A member of a map that closures see.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Type of its value.
    pub value: &'static str,
    /// Unit; empty without one.
    pub unit: &'static str,
    /// Its meaning, as Markdown.
    pub text: &'static str,
    /// Runs that have it.
    pub needs: Needs,
    /// Members of its value, if that is a map whose members are listed.
    pub members: &'static [Member],
}

/// What a run must have for a member to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Every run has it.
    Nothing,
    /// Gas.
    Gas,
    /// Dark matter.
    DarkMatter,
    /// Gravity.
    Gravity,
    /// Comoving coordinates.
    Comoving,
}

impl Member {
    /// A member of every run, whose value has no listed members.
    pub(super) const fn new(name: &'static str, value: &'static str, text: &'static str) -> Self {
        Self { name, value, unit: "", text, needs: Needs::Nothing, members: &[] }
    }

    /// A member in this unit.
    pub(super) const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// A member of runs with `needs` alone.
    pub(super) const fn needing(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// The same with the members of its value.
    pub(super) const fn with(self, members: &'static [Member]) -> Self {
        Self { members, ..self }
    }
}

impl Function {
    /// One that is called in these ways, named as the first says.
    pub(super) const fn new(signatures: &'static [&'static str], text: &'static str) -> Self {
        let mut end = 0;
        while signatures[0].as_bytes()[end] != b'(' {
            end += 1;
        }
        Self { name: signatures[0].split_at(end).0, signatures, usage: "", text, options: &[], gives: &[] }
    }

    /// What a closure returns under a name, which nobody calls.
    pub(super) const fn example(name: &'static str, text: &'static str) -> Self {
        Self { name, signatures: &[], usage: "", text, options: &[], gives: &[] }
    }

    /// The same with how it is written, for messages.
    pub(super) const fn used_as(self, usage: &'static str) -> Self {
        Self { usage, ..self }
    }

    /// The same with the members of the map that it returns.
    pub(super) const fn giving(self, gives: &'static [Member]) -> Self {
        Self { gives, ..self }
    }

    /// The same with the structures that its options are decoded to.
    pub(super) const fn with_options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

/// A type of a recipe that has properties, methods or members.
#[derive(Debug)]
pub struct Type {
    /// Its name in signatures.
    pub name: &'static str,
    /// What it is, as Markdown.
    pub text: &'static str,
    /// Names, types and meanings of its properties.
    pub properties: &'static [(&'static str, &'static str, &'static str)],
    /// Its methods.
    pub methods: &'static [Function],
    /// Members of a map that closures see.
    pub members: &'static [Member],
}

/// A part of the reference.
#[derive(Debug)]
pub struct Part {
    /// Its heading.
    pub heading: &'static str,
    /// Who may call its functions.
    pub callers: Callers,
    /// Functions.
    pub functions: &'static [Function],
    /// Types.
    pub types: &'static [Type],
}

/// Who may call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Recipes and scripts.
    All,
    /// Recipes: it makes stages, or what stages are made of.
    Recipes,
    /// Scripts (`comove script`).
    Scripts,
}

impl Callers {
    /// Whether `self`, recipes or scripts, may call what is for `others`.
    pub(super) fn are_among(self, others: Self) -> bool {
        others == Self::All || others == self
    }
}
