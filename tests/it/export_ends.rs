//! How an export may end before its end: signals, limits, files that change. Nothing half written is left, and what a
//! kill leaves behind goes away with the next export. Memory is what the plan says.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::{Run, command, ended, mlxcel};
use crate::sparse;

/// A model of 440 MB that takes no space, a donor like it, and a surgery file for both.
struct Fixture(tempfile::TempDir);

const LAYERS: &str = "model.embed_tokens.weight BF16 32000,4096\n\
    model.layers.{0..1}.mlp.down_proj.weight BF16 4096,11008\n\
    model.norm.weight BF16 4096\n\
    lm_head.weight BF16 16,4096";

const EXPORT: [&str; 6] = ["surgery", "export", "surgery.yaml", "--model", "model", "--output=new"];

impl Fixture {
    fn new() -> Self {
        Self::of(LAYERS)
    }

    /// With a model that is exported quickly.
    fn small() -> Self {
        Self::of("model.embed_tokens.weight BF16 8000,1024")
    }

    /// With a model and a donor that have these tensors.
    fn of(list: &str) -> Self {
        let stage = Self(tempfile::tempdir().expect("a temporary directory"));
        sparse::write(&stage.at("model/model.safetensors"), list);
        sparse::write(&stage.at("donor.safetensors"), list);
        let config = r#"{"model_type": "llama", "tie_word_embeddings": false}"#;
        fs::write(stage.at("model/config.json"), config).expect("a file");
        stage.asks("{op: add, pattern: '*', source: donor.safetensors}");
        stage
    }

    fn asks(&self, operation: &str) {
        let text = format!("version: 1\noperations: [{operation}]\n");
        fs::write(self.at("surgery.yaml"), text).expect("a file");
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self) -> Child {
        let mut command = command(self.0.path());
        command.args(EXPORT).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program can be run")
    }

    /// An export that has begun to write.
    fn exporting(&self) -> Child {
        let child = self.start();
        let begun = Instant::now();
        while self.partial().is_none() {
            assert!(begun.elapsed() < Duration::from_mins(1), "it never begins");
            sleep(Duration::from_millis(1));
        }
        child
    }

    /// The directory that is written in.
    fn partial(&self) -> Option<PathBuf> {
        let mut paths = fs::read_dir(self.0.path()).expect("it is there").flatten().map(|entry| entry.path());
        paths.find(|path| path.to_string_lossy().ends_with(".partial"))
    }

    #[track_caller]
    fn check_nothing_is_left(&self) {
        assert_eq!(self.partial(), None);
        assert!(!self.at("new").exists());
    }
}

fn wait(child: Child) -> Run {
    ended(child.wait_with_output().expect("it ends"))
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.expect("there is `kill`").success());
}

#[test]
fn every_signal_that_asks_to_end_is_heeded_and_leaves_nothing() {
    let stage = Fixture::new();
    for signal in ["-INT", "-TERM", "-HUP"] {
        let child = stage.exporting();
        send(signal, &child);
        let run = wait(child);
        assert_eq!((run.code, run.stdout.as_str()), (130, ""), "{signal}: {}", run.stderr);
        assert!(run.stderr.contains("interrupted; nothing is left behind"), "{signal}: {}", run.stderr);
        stage.check_nothing_is_left();
    }
}

#[test]
fn a_signal_at_any_time_leaves_nothing() {
    let stage = Fixture::new();
    for wait_for in [0, 1, 2, 4, 8, 16] {
        let mut child = stage.start();
        sleep(Duration::from_millis(wait_for));
        send("-TERM", &child);
        // Before the program listens, the signal ends it as it ends any program.
        child.wait().expect("it ends");
        stage.check_nothing_is_left();
    }
}

/// Both, as fast as a shell can.
fn send_two(signals: [&str; 2], child: &Child) {
    let id = child.id();
    let script = signals.map(|signal| format!("kill {signal} {id}")).join("; ");
    // By the second it may have ended.
    Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status().expect("there is `sh`");
}

#[test]
fn a_second_signal_ends_at_once_and_leaves_nothing_either() {
    let stage = Fixture::new();
    let signals = ["-INT", "-TERM", "-HUP"];
    for round in 0..24 {
        let child = stage.exporting();
        sleep(Duration::from_millis(round * 3));
        let first = signals.into_iter().cycle().skip(usize::try_from(round).expect("it is small"));
        send_two([first.clone().next(), first.clone().nth(1)].map(Option::unwrap_or_default), &child);
        let run = wait(child);
        assert_eq!((run.code, run.stdout.as_str()), (130, ""), "{round}: {}", run.stderr);
        assert_eq!(run.stderr, "interrupted; nothing is left behind\n", "{round}");
        stage.check_nothing_is_left();
    }
}

#[test]
fn two_signals_at_the_end_leave_all_or_nothing() {
    let stage = Fixture::new();
    sparse::write(&stage.at("model/model.safetensors"), "model.norm.weight BF16 4096");
    for _ in 0..60 {
        let child = stage.start();
        while stage.partial().is_none() && !stage.at("new").exists() {}
        send_two(["-INT", "-TERM"], &child);
        let run = wait(child);
        assert_eq!(stage.partial(), None);
        let whole = stage.at("new/surgery.json").exists();
        assert_eq!(whole, run.code == 0, "{}", run.stderr);
        assert_eq!(whole, run.stderr.contains("wrote `new`"), "{}", run.stderr);
        assert_eq!(whole, stage.at("new").exists());
        if whole {
            fs::remove_dir_all(stage.at("new")).expect("it can be removed");
        }
    }
}

#[test]
fn what_a_kill_leaves_is_removed_by_the_next_export() {
    let stage = Fixture::new();
    let mut child = stage.exporting();
    send("-KILL", &child);
    child.wait().expect("it ends");
    assert!(!stage.at("new").exists());
    let left = stage.partial().expect("no process could remove it");
    sparse::write(&stage.at("model/model.safetensors"), "model.norm.weight BF16 8");
    stage.asks("{op: scale, pattern: '*', factor: 2}");
    let run = wait(stage.start());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let name = left.file_name().expect("a name").to_string_lossy();
    assert!(run.stderr.contains(&format!("removed `./{name}`")), "{}", run.stderr);
    assert_eq!(stage.partial(), None);
    assert!(stage.at("new/config.json").exists());
}

#[test]
fn an_export_leaves_another_that_is_still_writing_alone() {
    let stage = Fixture::new();
    let first = stage.exporting();
    let other = stage.partial().expect("it writes");
    sparse::write(&stage.at("small/model.safetensors"), "model.norm.weight BF16 8");
    fs::copy(stage.at("model/config.json"), stage.at("small/config.json")).expect("a copy");
    fs::write(stage.at("small.yaml"), "version: 1\noperations: []\n").expect("a file");
    let run = mlxcel(stage.0.path(), "surgery export small.yaml --model small --output new");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stderr.contains("removed") && run.stderr.contains("has no effect"), "{}", run.stderr);
    assert!(other.exists());
    send("-INT", &first);
    assert_eq!(wait(first).code, 130);
    assert_eq!(stage.partial(), None);
}

#[test]
fn a_file_that_outgrows_the_limit_is_an_error() {
    let stage = Fixture::new();
    let script = format!("ulimit -f 20000; exec '{}' {}", env!("CARGO_BIN_EXE_mlxcel"), EXPORT.join(" "));
    let output = Command::new("sh").args(["-c", &script]).current_dir(stage.0.path()).output();
    let run = ended(output.expect("there is `sh`"));
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("output::output_unwritable"), "{}", run.stderr);
    assert!(run.stderr.contains("ulimit -f"), "{}", run.stderr);
    stage.check_nothing_is_left();
}

#[track_caller]
fn check_change_is_noticed(pattern: &str, change: impl Fn(&Fixture), mentions: &str) {
    let stage = Fixture::new();
    stage.asks(&format!("{{op: add, pattern: '{pattern}', source: donor.safetensors}}"));
    let child = stage.exporting();
    change(&stage);
    let run = wait(child);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("model::file_changed"), "{}", run.stderr);
    assert!(run.stderr.contains(mentions), "{}", run.stderr);
    stage.check_nothing_is_left();
}

#[test]
fn files_that_change_meanwhile_are_noticed() {
    let cut = |path: PathBuf| {
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_len(4096).expect("it can be cut");
    };
    check_change_is_noticed("*", |stage| cut(stage.at("donor.safetensors")), "donor.safetensors");
    check_change_is_noticed("*", |stage| cut(stage.at("model/model.safetensors")), "model.safetensors");
    // The rest is copied, which takes long enough.
    let spoil = |stage: &Fixture| fs::write(stage.at("model/config.json"), "{}").expect("a file");
    check_change_is_noticed("model.norm.weight", spoil, "config.json");
    // Written in place, and its modification time set back. The time of the status change cannot be set.
    let secretly = |stage: &Fixture| {
        let file = fs::File::options().write(true).open(stage.at("donor.safetensors")).expect("a file");
        let written = file.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        file.write_all_at(&[0x80, 0x3f], 100_000).expect("it can be written");
        file.set_modified(written).expect("it can be set");
    };
    check_change_is_noticed("model.norm.weight", secretly, "donor.safetensors");
}

#[test]
fn a_directory_that_goes_away_meanwhile_is_named() {
    let stage = Fixture::new();
    for remove in [true, false] {
        let child = stage.exporting();
        let partial = stage.partial().expect("it writes");
        // One that goes away before it is held is made again.
        while fs::read_dir(&partial).is_ok_and(|mut entries| entries.next().is_none()) {}
        if remove {
            // Files may be added while it is emptied.
            while partial.exists() {
                let _ = fs::remove_dir_all(&partial);
            }
        } else {
            fs::rename(&partial, stage.at("moved")).expect("it can be moved");
        }
        let run = wait(child);
        assert_eq!(run.code, 1, "{}", run.stderr);
        // Lines may be broken anywhere.
        let words: Vec<&str> = run.stderr.split_whitespace().collect();
        assert!(words.join(" ").contains("was moved or removed"), "{}", run.stderr);
        stage.check_nothing_is_left();
    }
}

#[test]
fn what_appears_at_the_output_meanwhile_is_left_alone() {
    let stage = Fixture::small();
    let new = stage.at("new");
    for number in 0..3 {
        let child = stage.exporting();
        match number {
            0 => fs::write(&new, "mine").expect("a file"),
            1 => fs::create_dir(&new).expect("a directory"),
            _ => {
                fs::create_dir(&new).expect("a directory");
                fs::write(new.join("mine"), "mine").expect("a file");
            }
        }
        let run = wait(child);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.contains("already exists (created in the meantime)"), "{}", run.stderr);
        assert_eq!(stage.partial(), None);
        match number {
            0 => fs::remove_file(&new).expect("it is still a file"),
            1 => fs::remove_dir(&new).expect("it is still empty"),
            _ => fs::remove_file(new.join("mine")).expect("it is still there"),
        }
    }
}

#[test]
fn of_two_exports_to_one_place_one_is_written() {
    let stage = Fixture::small();
    let (first, second) = (stage.start(), stage.start());
    let (first, second) = (wait(first), wait(second));
    assert_eq!(first.code + second.code, 1, "{first:?} {second:?}");
    assert!(stage.at("new/surgery.json").exists());
    assert_eq!(stage.partial(), None);
}

/// The peak of a program's resident memory in bytes, and how it ended.
fn peak(mut command: Command) -> (u64, Run) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be run");
    let status = Path::new("/proc").join(child.id().to_string()).join("status");
    let mut peak = 0;
    while child.try_wait().expect("it can be asked").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = kilobytes.map_or(peak, |kilobytes| kilobytes * 1024);
        sleep(Duration::from_micros(500));
    }
    (peak, wait(child))
}

/// What the allocator, the threads' stacks and the file's headers may take besides.
#[cfg(target_os = "linux")]
const SLACK: u64 = 6 << 20;

#[cfg(target_os = "linux")]
#[test]
fn an_export_takes_no_more_memory_than_the_plan_says() {
    let stage = Fixture::new();
    let tensors = "model.embed_tokens.weight BF16 8000,1024";
    sparse::write(&stage.at("model/model.safetensors"), tensors);
    sparse::write(&stage.at("donor.safetensors"), tensors);
    stage.asks("{op: replace, pattern: model.embed_tokens.weight, source: donor.safetensors, source_key: model.embed_tokens.weight}");
    let plan = mlxcel(stage.0.path(), "surgery plan surgery.yaml --model model --format json").json();
    let promised = plan["summary"]["peak_extra_bytes"].as_u64().expect("a number");
    let mut planning = command(stage.0.path());
    planning.args(["surgery", "plan", "surgery.yaml", "--model", "model"]);
    let mut exporting = command(stage.0.path());
    exporting.args(EXPORT);
    let ((before, _), (after, run)) = (peak(planning), peak(exporting));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let extra = after.saturating_sub(before);
    assert!(extra <= promised + SLACK, "{extra} bytes, and {promised} were promised");
}

/// A llama of one layer with 512 channels that takes no space, and a donor like it.
#[cfg(feature = "mlx")]
fn small_llama() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| stage.path().join(name);
    let tensors = "model.embed_tokens.weight BF16 16000,512\nmodel.norm.weight BF16 512\n".to_owned()
        + &[("q", "512,512"), ("k", "512,512"), ("v", "512,512"), ("o", "512,512")]
            .map(|(name, shape)| format!("model.layers.0.self_attn.{name}_proj.weight BF16 {shape}\n"))
            .concat()
        + &[("gate", "1024,512"), ("up", "1024,512"), ("down", "512,1024")]
            .map(|(name, shape)| format!("model.layers.0.mlp.{name}_proj.weight BF16 {shape}\n"))
            .concat()
        + "model.layers.0.input_layernorm.weight BF16 512\nmodel.layers.0.post_attention_layernorm.weight BF16 512\n";
    sparse::write(&at("model/model.safetensors"), &tensors);
    sparse::write(&at("donor.safetensors"), &tensors);
    let config = r#"{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 1,
        "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 16000, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "max_position_embeddings": 2048, "tie_word_embeddings": true}"#;
    fs::write(at("model/config.json"), config).expect("a file");
    stage
}

/// The names in a directory.
#[cfg(feature = "mlx")]
fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).expect("it is there").flatten().map(|entry| entry.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Scoring that has begun to write its logits, and the name of what it writes.
#[cfg(feature = "mlx")]
fn scoring(stage: &Path) -> (Child, String) {
    let tokens = vec!["1"; 2000].join(",");
    let mut score = command(stage);
    score.args(["score", "--model", "model", "--quiet", "--logits", "logits", "--tokens", &tokens]);
    let child = score.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be run");
    let partial = || names(stage).into_iter().find(|name| name.ends_with(".partial"));
    let begun = Instant::now();
    while partial().is_none() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it never begins");
    }
    (child, partial().expect("it is still written"))
}

#[cfg(feature = "mlx")]
#[test]
fn scoring_that_is_broken_off_leaves_no_half_of_a_file_of_logits() {
    let stage = small_llama();
    let before = names(stage.path()).len();
    let (child, _) = scoring(stage.path());
    send("-INT", &child);
    let run = wait(child);
    assert_eq!((run.code, run.stderr.as_str()), (130, "interrupted; nothing is left behind\n"));
    assert_eq!(names(stage.path()).len(), before, "{:?}", names(stage.path()));
}

#[cfg(feature = "mlx")]
#[test]
fn logits_that_a_kill_left_half_written_are_removed_by_the_next_scoring() {
    let stage = small_llama();
    let before = names(stage.path()).len();
    let (mut child, left) = scoring(stage.path());
    send("-KILL", &child);
    child.wait().expect("it ends");
    assert!(names(stage.path()).contains(&left), "no process could remove it");
    let run = mlxcel(stage.path(), "score --model model --tokens 1,2,3 --logits logits");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("removed `./{left}`")), "{}", run.stderr);
    assert_eq!(names(stage.path()).len(), before + 1, "{:?}", names(stage.path()));
    assert!(stage.path().join("logits").exists());
}

#[cfg(all(target_os = "linux", feature = "mlx"))]
#[test]
fn loading_with_surgery_takes_no_more_memory_than_the_plan_says() {
    let stage = small_llama();
    let yaml = "version: 1\noperations:\n- {op: add, pattern: '*', source: donor.safetensors}\n";
    fs::write(stage.path().join("surgery.yaml"), yaml).expect("a file");
    let plan = mlxcel(stage.path(), "surgery plan surgery.yaml --model model --format json").json();
    let promised = plan["summary"]["peak_extra_bytes"].as_u64().expect("a number");
    let score = |arguments: &[&str]| {
        let mut score = command(stage.path());
        score.args(["score", "--model", "model", "--tokens", "1,2,3"]).args(arguments);
        let (peak, run) = peak(score);
        assert_eq!(run.code, 0, "{}", run.stderr);
        peak
    };
    let (untouched, operated) = (score(&[]), score(&["--surgery", "surgery.yaml"]));
    let extra = operated.saturating_sub(untouched);
    assert!(extra <= promised + SLACK, "{extra} bytes, and {promised} were promised");
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_that_may_open_no_more_files_leaves_nothing() {
    let stage = Fixture::new();
    sparse::write(&stage.at("model/model.safetensors"), "model.norm.weight BF16 8");
    stage.asks("{op: scale, pattern: '*', factor: 2}");
    let run = |limit: usize| {
        let script =
            format!("ulimit -n {limit}; exec '{}' {}", env!("CARGO_BIN_EXE_mlxcel"), EXPORT.join(" "));
        let output = Command::new("sh").args(["-c", &script]).current_dir(stage.0.path()).output();
        ended(output.expect("there is `sh`"))
    };
    let mut refused = 0;
    for limit in 4..16 {
        let run = run(limit);
        if run.code == 0 {
            fs::remove_dir_all(stage.at("new")).expect("it can be removed");
        } else {
            assert_eq!(run.code, 1, "{limit}: {}", run.stderr);
            refused += u32::from(run.stderr.contains("too many open files"));
        }
        stage.check_nothing_is_left();
    }
    assert!(refused > 0);
}
