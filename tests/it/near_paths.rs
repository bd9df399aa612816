//! Paths that lead beside what was meant: to a directory of models, to a file of one, to a name without its ending.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::program::mlxcel;

/// `model`; `all` with two models and a file of weights; `one` with a model; `hub` as the cache of a hub has it; a surgery
/// file and donors.
fn stage() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| stage.path().join(name);
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales");
    for dir in ["all", "one", "hub/refs", "hub/snapshots"] {
        fs::create_dir_all(at(dir)).expect("a directory");
    }
    for (model, link) in [
        ("base", "model"),
        ("base", "all/base"),
        ("tuned", "all/tuned"),
        ("base", "one/base"),
        ("base", "hub/snapshots/0a1b"),
    ] {
        symlink(models.join(model), at(link)).expect("a link");
    }
    for vector in ["all/vector.safetensors", "vector.safetensors"] {
        fs::copy(models.join("task_vector.safetensors"), at(vector)).expect("a copy");
    }
    let yaml = "version: 1\noperations:\n- {op: scale, pattern: model.norm.weight, factor: 2}\n";
    fs::write(at("joy.yaml"), yaml).expect("a file");
    stage
}

/// Runs a command that is refused: its help, whose lines may be broken anywhere, has `help`.
#[track_caller]
fn check(stage: &tempfile::TempDir, arguments: &str, help: &str) {
    let run = mlxcel(stage.path(), arguments);
    let said = run.stdout.split_whitespace().chain(run.stderr.split_whitespace());
    let said = said.filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert_eq!(run.code, 1, "{arguments}: {said}");
    let helps = said.split("help: ").skip(1).any(|said| said.starts_with(help));
    assert!(helps, "{arguments}: {}{}", run.stdout, run.stderr);
}

/// Every command that takes a model directory.
fn takers(path: &str) -> Vec<String> {
    let mut commands = vec![
        format!("surgery plan joy.yaml --model {path}"),
        format!("surgery check joy.yaml --model {path}"),
        format!("surgery keys --model {path}"),
        format!("surgery export joy.yaml --model {path} --output new"),
        format!("surgery diff {path} model"),
        format!("surgery diff model {path}"),
        format!("surgery diff {path} --surgery joy.yaml"),
    ];
    if cfg!(feature = "mlx") {
        commands.extend([
            format!("generate --model {path} --prompt x"),
            format!("generate --model {path} --prompt x --surgery joy.yaml"),
            format!("score --model {path} --text joy.yaml"),
            format!("serve --model {path} --port 0"),
        ]);
    }
    commands
}

#[test]
fn a_directory_of_models_is_told_from_a_model() {
    let stage = stage();
    for command in takers("one") {
        check(&stage, &command, "did you mean `one/base`?");
    }
    for command in takers("hub") {
        check(&stage, &command, "did you mean `hub/snapshots/0a1b`?");
    }
    for command in takers("all") {
        // A file of weights beside them may be meant where any weights are taken.
        let any = command.contains("diff") && !command.contains("--surgery");
        let first = if any { "to use that file, name it; " } else { "" };
        check(&stage, &command, &format!("{first}it contains models: `all/base` and `all/tuned`"));
    }
    assert!(!stage.path().join("new").exists());
}

#[test]
fn weights_beside_models_are_a_donor_and_a_file_all_the_same() {
    let stage = stage();
    let add = |source: &str, pattern: &str| {
        let yaml =
            format!("version: 1\noperations:\n- {{op: add, pattern: '{pattern}', source: {source}}}\n");
        fs::write(stage.path().join("add.yaml"), yaml).expect("a file");
    };
    let plan = "surgery plan add.yaml --model model";
    add("all", "model.layers.*.mlp.down_proj.weight");
    let run = mlxcel(stage.path(), plan);
    assert_eq!(run.code, 0, "{run:#?}");
    for same in ["surgery keys --donor all", "surgery diff model all/vector.safetensors"] {
        assert_eq!(mlxcel(stage.path(), same).code, 0, "{same}");
    }
    // Weights that stand where a checkpoint has its own are one.
    fs::copy(stage.path().join("vector.safetensors"), stage.path().join("one/model.safetensors"))
        .expect("a copy");
    assert_eq!(mlxcel(stage.path(), "surgery diff model one").code, 0);
    // Where they are not what was meant, the models are named.
    let only = "version: 1\noperations:\n- {op: replace, pattern: model.norm.weight, source: all, source_key: norm}\n";
    fs::write(stage.path().join("add.yaml"), only).expect("a file");
    let run = mlxcel(stage.path(), plan);
    assert!(
        run.stderr.contains("the donor is read from a file") && run.stderr.contains("`all/base`"),
        "{run:#?}"
    );
    add("hub", "model.norm.weight");
    check(&stage, plan, "did you mean `hub/snapshots/0a1b`?");
}

#[test]
fn a_file_of_a_model_is_answered_with_its_directory() {
    let stage = stage();
    for file in ["model/model.safetensors", "model/config.json"] {
        for command in takers(file).iter().filter(|command| !command.contains("diff")) {
            check(&stage, command, "did you mean `model`?");
        }
    }
    for command in takers("vector.safetensors").iter().filter(|command| !command.contains("diff")) {
        check(&stage, command, "a model is a directory");
    }
}

#[test]
fn a_name_with_another_ending_is_offered() {
    let stage = stage();
    for written in ["joy", "joy.yml", "joy.json", "Joy.YAML"] {
        check(&stage, &format!("surgery plan {written} --model model"), "did you mean `joy.yaml`?");
        check(&stage, &format!("surgery check {written}"), "did you mean `joy.yaml`?");
        check(&stage, &format!("surgery diff model --surgery {written}"), "did you mean `joy.yaml`?");
        if cfg!(feature = "mlx") {
            let generate = format!("generate --model model --prompt x --surgery {written}");
            check(&stage, &generate, "did you mean `joy.yaml`?");
        }
    }
    for written in ["vector", "vector.bin", "vectr", "vector.safetensor"] {
        let yaml = format!(
            "version: 1\noperations:\n- {{op: add, pattern: '*.down_proj.weight', source: {written}}}\n"
        );
        fs::write(stage.path().join("add.yaml"), yaml).expect("a file");
        check(&stage, "surgery plan add.yaml --model model", "did you mean `vector.safetensors`?");
        check(&stage, &format!("surgery diff model {written}"), "did you mean `vector.safetensors`?");
        check(&stage, &format!("surgery keys --donor {written}"), "did you mean `vector.safetensors`?");
    }
    // As one would write it in that file.
    fs::create_dir(stage.path().join("sub")).expect("a directory");
    for (donor, meant) in [("vector", "vector.safetensors"), ("hub", "hub/snapshots/0a1b"), ("nub", "hub")] {
        let yaml = format!("version: 1\noperations:\n- {{op: add, pattern: '*', source: {donor}}}\n");
        fs::write(stage.path().join("sub/add.yaml"), yaml).expect("a file");
        for near in ["hub", "vector.safetensors"] {
            let link = stage.path().join("sub").join(near);
            if !link.exists() {
                symlink(Path::new("..").join(near), link).expect("a link");
            }
        }
        check(&stage, "surgery check sub/add.yaml", &format!("did you mean `{meant}`?"));
    }
    // A file of weights is no model.
    check(&stage, "surgery plan joy.yaml --model vector", "a model is a directory");
}
