//! The `mlxcel` program.

#[cfg(all(feature = "mlx", target_os = "linux", target_arch = "x86_64"))]
mlxcel::export_sgemm!();

fn main() {
    mlxcel::main()
}
