//! The program ends by itself and soon, even if its libraries wait for something.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any command here takes on a busy machine; only a program that hangs takes as long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The output of a program that ends by itself.
#[track_caller]
fn ends(mut child: Child, what: &str) -> Output {
    let begun = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().expect("it can be ended");
            panic!("it hangs: {what}");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

/// Threads of a BLAS retry forever to get memory, and its destructors wait for them.
#[cfg(target_os = "linux")]
#[test]
fn a_process_with_little_address_space_ends() {
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
        // What the libraries need depends on the machine; the smallest limit is too small everywhere.
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

/// While starting, planning, loading and generating.
#[cfg(feature = "mlx")]
#[test]
fn a_signal_at_any_time_ends_generating() {
    use std::os::unix::process::ExitStatusExt as _;

    let stage = tempfile::tempdir().expect("a temporary directory");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    std::os::unix::fs::symlink(model, stage.path().join("model")).expect("a link");
    let yaml = "version: 1\noperations:\n- {op: scale, pattern: '*', factor: 0.5}\n";
    std::fs::write(stage.path().join("surgery.yaml"), yaml).expect("a file");
    let arguments =
        "generate --model model --surgery surgery.yaml --prompt Once --max-tokens 200 --temp 1 --quiet";
    let mut broken_off = 0;
    for (round, (name, number)) in
        [("-INT", 2), ("-TERM", 15), ("-HUP", 1)].into_iter().cycle().take(24).enumerate()
    {
        let mut generate = crate::program::command(stage.path());
        generate.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = generate.spawn().expect("it can be run");
        sleep(Duration::from_millis(12) * u32::try_from(round).expect("it is small"));
        let id = child.id().to_string();
        // The program may have ended already.
        Command::new("kill").args([name, &id]).stderr(Stdio::null()).status().expect("there is `kill`");
        let output = ends(child, name);
        // Before the program listens for signals, they end it like any program.
        let by_signal = output.status.signal() == Some(number);
        assert!(by_signal || matches!(output.status.code(), Some(0 | 130)), "{round} {name}: {output:?}");
        assert!(output.stderr.is_empty(), "{round} {name}: {output:?}");
        broken_off += u32::from(output.status.code() == Some(130));
    }
    assert!(broken_off > 0);
    assert_eq!(std::fs::read_dir(stage.path()).expect("it is there").count(), 2);
}
