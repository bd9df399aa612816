//! A glob over whole keys: [`Pattern`]; its use on many keys: [`Matcher`]; [`Captures`] and [`Template`] for `replace`.
//!
//! The dialect is our own: `*` (any text, including dots), `?` (one character), `[0-3]`, `[!a]` or `[^a]`, `{a,b}`,
//! `{0..15}` and `\` escapes, case-sensitive. [`parse`] reads it into [`Part`]s. A pattern keeps only its text, because a
//! file may have many; [`Matcher`] takes its parts and runs them, [`capture`] finds what each `*` captures where that is
//! not evident.
//!
//! The matcher is our own too: building globset's automata takes longer than planning a typical file. globset checks it
//! in a property test.

#[cfg(test)]
mod as_globset;
mod capture;
mod glob;
mod in_file;
mod matcher;
mod parse;
mod part;
mod places;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use glob::Pattern;
pub(super) use in_file::offset_in_file;
pub use matcher::Matcher;
pub(super) use parse::PatternError;
pub(crate) use template::Template;
