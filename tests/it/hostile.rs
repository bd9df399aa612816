//! Things that are no files, files that are too large, files that multiply: each is answered, soon and in little memory.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::fixture::Fixture;
use crate::program::{Run, command, ended};
use crate::sparse;

const SCALE: &str = "version: 1\noperations:\n- op: scale\n  pattern: model.norm.weight\n  factor: 0.5\n";
const ADD: &str = "version: 1\noperations:\n- op: add\n  pattern: model.norm.weight\n  source: donor\n";

/// Runs with little address space; a run that hangs is a failure and not a test that never ends.
#[track_caller]
fn run(dir: &Path, arguments: &str) -> Run {
    let mut limited = Command::new("sh");
    let program = command(dir).get_program().to_owned();
    // 4 GB of address space: threads and libraries reserve some, nothing here needs it.
    limited.current_dir(dir).args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh"]).arg(program);
    limited.args(arguments.split(' ')).stdin(std::process::Stdio::null());
    let child = limited
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let id = child.id().to_string();
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    if let Ok(output) = waiting.recv_timeout(Duration::from_mins(2)) {
        return ended(output.expect("the program ends"));
    }
    let _ = Command::new("kill").args(["-9", &id]).status();
    panic!("`{arguments}` hangs");
}

#[track_caller]
fn check(dir: &Path, arguments: &str, code: &str, mention: &str) {
    let run = run(dir, arguments);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{arguments}: {run:#?}");
    let codes: usize = ["surgery::", "model::", "output::", "system::"]
        .iter()
        .map(|namespace| run.stderr.matches(namespace).count())
        .sum();
    assert_eq!(codes, 1, "{arguments}: {}", run.stderr);
    assert!(run.stderr.contains(code) && run.stderr.contains(mention), "{arguments}: {}", run.stderr);
}

/// Puts what is no file where a file should be: a pipe that nobody writes to, and a device without end.
fn each_odd_file(test: impl Fn(&Path, &dyn Fn(&Path))) {
    let fifo = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().expect("mkfifo can be run");
        assert!(made.success());
    };
    let zero = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).expect("a link can be made");
    let dir = tempfile::tempdir().expect("a temporary directory");
    test(&dir.path().join("fifo"), &fifo);
    test(&dir.path().join("zero"), &zero);
}

#[test]
fn pipes_and_devices_are_refused_wherever_they_stand() {
    each_odd_file(|dir, make| {
        let fresh = |yaml: &str| {
            let _ = fs::remove_dir_all(dir);
            sparse::checkpoint("llama-3.2-1b", &dir.join("model"));
            fs::write(dir.join("surgery.yaml"), yaml).expect("a file can be written");
        };
        let plan = "surgery plan surgery.yaml --model model";
        fresh(SCALE);
        fs::remove_file(dir.join("surgery.yaml")).expect("a file can be removed");
        make(&dir.join("surgery.yaml"));
        check(dir, plan, "surgery::file_unreadable", "regular file");
        fresh(SCALE);
        make(&dir.join("odd"));
        check(dir, "surgery plan surgery.yaml --model odd", "model::model_unreadable", "regular file");
        fresh(ADD);
        make(&dir.join("donor"));
        check(dir, plan, "surgery::donor_unreadable", "regular file");
        check(dir, "surgery keys --donor donor", "surgery::donor_unreadable", "regular file");
        fresh(ADD);
        fs::create_dir(dir.join("donor")).expect("a directory can be made");
        make(&dir.join("donor/model.safetensors"));
        check(dir, plan, "surgery::donor_unreadable", "regular file");
        make(&dir.join("donor/model.safetensors.index.json"));
        check(dir, plan, "model::bad_shard_index", "regular file");
        for name in ["model.safetensors", "config.json"] {
            fresh(SCALE);
            fs::remove_file(dir.join("model").join(name)).expect("a file can be removed");
            make(&dir.join("model").join(name));
            check(dir, plan, "model::model_unreadable", "regular file");
        }
        fresh(SCALE);
        make(&dir.join("model/model.safetensors.index.json"));
        check(dir, plan, "model::bad_shard_index", "regular file");
    });
}

#[test]
fn a_file_of_100_megabytes_is_too_large_wherever_it_stands() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    let large = |name: &str, size: u64| {
        let file = File::create(stage.dir().join(name)).expect("a file can be made");
        file.set_len(size).expect("a file can have a hole");
    };
    let plan = "surgery plan surgery.yaml --model model";
    large("surgery.yaml", 100 << 20);
    check(stage.dir(), plan, "surgery::file_unreadable", "4 MiB");
    fs::write(stage.dir().join("surgery.yaml"), SCALE).expect("a file can be written");
    large("model/model.safetensors.index.json", 200 << 20);
    check(stage.dir(), plan, "model::bad_shard_index", "larger than");
    fs::remove_file(stage.dir().join("model/model.safetensors.index.json")).expect("a file can be removed");
    large("model/config.json", 100 << 20);
    check(stage.dir(), plan, "model::model_unreadable", "larger than");
}

#[test]
fn aliases_that_multiply_are_refused() {
    let lists =
        (1..12).map(|n| format!("x-a{n}: &a{n} [{}]", [format!("*a{}", n - 1).as_str(); 10].join(", ")));
    let lists = lists.collect::<Vec<_>>().join("\n");
    let text = format!("version: 1\nx-a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{lists}\n");
    let merges = (1..30).map(|n| format!("x-m{n}: &m{n} {{<<: [*m{0}, *m{0}], a{n}: 1}}", n - 1));
    let merges = merges.collect::<Vec<_>>().join("\n");
    for bomb in [
        text.clone() + "operations: *a11\n",
        text + "operations: []\n",
        format!("version: 1\nx-m0: &m0 {{a: 1}}\n{merges}\noperations: []\n"),
        format!("version: 1\noperations: {}{}\n", "[".repeat(50_000), "]".repeat(50_000)),
    ] {
        let stage = Fixture::new("llama-3.2-1b", &bomb);
        check(stage.dir(), "surgery plan surgery.yaml --model model", "surgery::syntax", "");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_planned_in_and_not_exported_to() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    let mode = |mode| {
        fs::set_permissions(stage.dir(), fs::Permissions::from_mode(mode)).expect("permissions can be set");
    };
    mode(0o555);
    let planned = run(stage.dir(), "surgery plan surgery.yaml --model model");
    mode(0o755);
    assert_eq!(planned.code, 0, "{planned:#?}");
    // `/proc` refuses even those whom permissions do not bind.
    if Path::new("/proc/self").exists() {
        let model = stage.dir().join("model");
        fs::remove_file(model.join("model.safetensors")).expect("a file can be removed");
        sparse::write(&model.join("model.safetensors"), "model.norm.weight BF16 64\n");
        check(
            stage.dir(),
            "surgery export surgery.yaml --model model --output /proc/exported",
            "output::output_unwritable",
            "/proc",
        );
    }
}

#[test]
fn more_shards_than_files_may_be_open_are_planned() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    let model = stage.dir().join("model");
    fs::remove_file(model.join("model.safetensors")).expect("a file can be removed");
    for shard in 0..300 {
        let key = if shard == 0 { "model.norm.weight".to_owned() } else { format!("model.layers.{shard}.w") };
        sparse::write(&model.join(format!("model-{shard:05}.safetensors")), &format!("{key} F32 4\n"));
    }
    let mut few = Command::new("sh");
    let program = command(stage.dir()).get_program().to_owned();
    few.current_dir(stage.dir()).args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).arg(program);
    few.args(["surgery", "export", "surgery.yaml", "--model", "model", "--output", "new"]);
    let run = ended(few.output().expect("the program can be run"));
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(stage.dir().join("new").join("model-00299.safetensors").exists());
}

#[cfg(all(target_os = "linux", feature = "mlx"))]
#[test]
fn a_limit_of_memory_that_would_hang_the_libraries_is_refused() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    let generate = |option: &str, kibibytes: u64| {
        let script = format!("ulimit {option} {kibibytes}; exec \"$@\"");
        let mut sh = Command::new("sh");
        sh.args([
            "-c",
            &script,
            "sh",
            env!("CARGO_BIN_EXE_mlxcel"),
            "generate",
            "--prompt",
            "Once",
            "--model",
        ]);
        sh.arg(&model).args(["--max-tokens", "3", "--quiet"]).env_remove("MLXCEL_SURGERY");
        ended(sh.output().expect("the program can be run"))
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    for (option, of, too_little) in
        [("-v", "address space", [400_000, 700_000, 900_000]), ("-d", "data", [60_000, 200_000, 400_000])]
    {
        for kibibytes in too_little {
            let run = generate(option, kibibytes);
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:#?}");
            let said = format!("of {of} (`ulimit {option}`)");
            assert!(run.stderr.contains(&said) && run.stderr.contains("raise"), "{run:#?}");
            assert!(run.stderr.contains("system::limit_exceeded"), "{run:#?}");
        }
        let run = generate(option, 1_500_000 + cores * 300_000);
        assert_eq!(run.code, 0, "{run:#?}");
    }
}

#[test]
fn any_number_of_threads_may_be_asked_for() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    for number in ["0", "1", "100000", "18446744073709551615", "-1", "x"] {
        let mut plan = command(stage.dir());
        plan.args(["surgery", "plan", "surgery.yaml", "--model", "model"]).env("RAYON_NUM_THREADS", number);
        let run = ended(plan.output().expect("the program can be run"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{number}");
    }
}

#[test]
fn a_small_stack_is_enough() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    let (open, close) = ("[".repeat(100), "]".repeat(100));
    fs::write(stage.dir().join("deep.yaml"), format!("version: 1\noperations: {open}{close}\n"))
        .expect("a file");
    let run = |arguments: &str| {
        let script = format!("ulimit -s 100; exec '{}' {arguments}", env!("CARGO_BIN_EXE_mlxcel"));
        ended(
            Command::new("sh")
                .args(["-c", &script])
                .current_dir(stage.dir())
                .output()
                .expect("there is `sh`"),
        )
    };
    for arguments in ["--version", "--help", "surgery plan surgery.yaml --model model"] {
        let run = run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments}");
    }
    assert_eq!(run("surgery plan").code, 2);
    let run = run("surgery check deep.yaml");
    assert!(run.code == 1 && run.stdout.contains("surgery::syntax"), "{run:#?}");
}
