//! What was probably meant: text in, help out. Nothing here knows diagnostics or reads values.

mod field;
mod layout;
mod notation;
mod op_name;
mod quotes;
mod synonyms;

pub(super) use field::{Siblings, misplaced_help};
pub(super) use layout::explain_layout;
pub(super) use notation::{ids_in_text, number_in_text};
pub(super) use op_name::{is_op_misspelled, op_meant};
pub(super) use quotes::{flow_text, quote_pattern, quoted, unquoted_pattern};
pub(super) use synonyms::choice_meant;
