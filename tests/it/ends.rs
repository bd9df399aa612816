//! How the program ends: by itself, and soon, whatever the libraries in it are waiting for.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any command here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a program came to that ends by itself.
#[track_caller]
fn ends(mut child: Child, what: &str) -> Output {
    let begun = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().expect("it can be ended");
            panic!("it never ends: {what}");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

/// Threads of a BLAS that find no memory look for it for ever, and its destructors wait for them.
#[cfg(target_os = "linux")]
#[test]
fn a_process_with_few_addresses_ends_all_the_same() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for arguments in
        ["--version", "surgery explain no_match", "surgery keys --model models/tiny-tales/base-bf16"]
    {
        let run = |limit: &str| {
            let script = format!("ulimit -v {limit}; exec '{}' {arguments}", env!("CARGO_BIN_EXE_mlxcel"));
            let mut sh = Command::new("sh");
            sh.args(["-c", &script]).current_dir(&fixtures).stdin(Stdio::null());
            let child = sh.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is `sh`");
            ends(child, &format!("{arguments} with {limit} kB"))
        };
        let expected = run("unlimited");
        assert_eq!(expected.status.code(), Some(0), "{arguments}");
        let mut whole = 0;
        // How much the libraries take depends on the machine; the least is too little anywhere.
        for limit in (6..40).map(|limit| (limit * 10_000).to_string()) {
            let output = run(&limit);
            if output.status.success() {
                assert_eq!(output.stdout, expected.stdout, "{arguments} with {limit} kB");
                whole += 1;
            }
        }
        assert!(whole > 0, "{arguments}");
    }
}
