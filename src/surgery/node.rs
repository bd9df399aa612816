//! The YAML as a spanned tree.
