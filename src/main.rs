//! mlxcel.
fn main() {}
