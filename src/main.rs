//! The `mlxcel` program.

mlxcel::export_sgemm!();

fn main() {
    mlxcel::main()
}
