//! Lets the binary and the tests find libmlx at run time.
//!
//! On Linux the table that `cargo xtask setup` generates hands us the folder of `libmlx.so` as `DEP_MLX_LIB_DIR`;
//! on Apple systems MLX is linked statically and the variable is absent, as it is in the MLX-free build.

fn main() {
    println!("cargo::rerun-if-env-changed=DEP_MLX_LIB_DIR");
    if let Ok(folder) = std::env::var("DEP_MLX_LIB_DIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
