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
}

impl Function {
    /// One that is called in these ways, named as the first says.
    pub(super) const fn new(signatures: &'static [&'static str], text: &'static str) -> Self {
        let mut end = 0;
        while signatures[0].as_bytes()[end] != b'(' {
            end += 1;
        }
        Self { name: signatures[0].split_at(end).0, signatures, usage: "", text, options: &[] }
    }

    /// What a closure returns under a name, which nobody calls.
    pub(super) const fn example(name: &'static str, text: &'static str) -> Self {
        Self { name, signatures: &[], usage: "", text, options: &[] }
    }

    /// The same with how it is written, for messages.
    pub(super) const fn used_as(self, usage: &'static str) -> Self {
        Self { usage, ..self }
    }

    /// The same with the structures that its options are decoded to.
    pub(super) const fn with_options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

/// A type of a recipe that has properties or methods.
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
