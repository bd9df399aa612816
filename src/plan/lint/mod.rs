//! Lints: planned steps and programs in, diagnostics out. They never change what is planned.

pub(super) mod overwritten;
