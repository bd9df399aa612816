//! Which C symbols the program defines for libmlx to find. By `nm`, which comes with the linker.

use std::path::Path;
use std::process::Command;

/// Whether an executable defines `cblas_sgemm` for the libraries that it loads.
fn exports_sgemm(executable: &Path) -> bool {
    let symbols =
        Command::new("nm").args(["-D", "--defined-only"]).arg(executable).output().expect("nm runs");
    assert!(symbols.status.success(), "{}", String::from_utf8_lossy(&symbols.stderr));
    let symbols = String::from_utf8_lossy(&symbols.stdout);
    symbols.lines().any(|line| line.ends_with(" T cblas_sgemm"))
}

#[test]
fn the_program_takes_over_products_and_the_library_leaves_them_to_the_blas() {
    assert!(exports_sgemm(Path::new(env!("CARGO_BIN_EXE_mlxcel"))));
    // These tests link the library, as other programs may.
    assert!(!exports_sgemm(&std::env::current_exe().expect("the system says")));
}
