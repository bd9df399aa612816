//! mlxcel.
