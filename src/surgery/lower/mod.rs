//! From the tree to operations and diagnostics.
//!
//! [`document`] reads the file's own fields, [`operation`] an entry of `operations` and its fields, [`values`] each
//! field's value; [`assemble`] makes the operation. Every mistake is recorded and lowering goes on, so that one run
//! reports all of them. A consequence of a reported mistake (a field that is missing because its name is misspelled) is
//! not reported.

mod assemble;
mod collector;
mod document;
mod expected;
mod mapping_keys;
mod numbers;
mod op_name;
mod operation;
mod patterns;
mod strings;
mod values;

pub(super) use document::lower;
