//! The `mlxcel` program.

fn main() {
    mlxcel::main()
}
