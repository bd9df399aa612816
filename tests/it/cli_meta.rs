//! `keys`, `explain`, `schema`, completions and manual pages.

use std::path::Path;

use serde_json::json;

use crate::fixture::Fixture;
use crate::program::mlxcel;

const NONE: &str = "version: 1\noperations: []\n";

#[test]
fn keys_are_listed_one_per_line_with_their_properties() {
    let stage = Fixture::new("llama-3.2-1b-4bit", NONE);
    let run = mlxcel(stage.dir(), "surgery keys --model model lm_head.*");
    assert_eq!(
        run.stdout,
        "lm_head.biases    bf16 [128256, 32]  4 bits, groups of 64  head  tied to model.embed_tokens.biases\n\
         lm_head.scales    bf16 [128256, 32]  4 bits, groups of 64  head  tied to model.embed_tokens.scales\n\
         lm_head.weight    u32 [128256, 256]  4 bits, groups of 64  head  tied to model.embed_tokens.weight\n"
    );
    let all = mlxcel(stage.dir(), "surgery keys --model model");
    assert_eq!((all.code, all.stdout.lines().count()), (0, 375));
}

#[test]
fn keys_as_json_have_optional_fields_only_where_they_apply() {
    let stage = Fixture::new("llama-3.2-1b-4bit", NONE);
    let run = mlxcel(
        stage.dir(),
        "surgery keys --model model --format json {lm_head.weight,model.norm.weight,*.0.self_attn.q_proj.scales}",
    );
    assert_eq!(
        run.json(),
        json!({ "format_version": "1.0", "keys": [
            {
                "key": "lm_head.weight",
                "dtype": "U32",
                "shape": [128_256, 256],
                "role": "head",
                "affine": { "bits": 4, "group_size": 64 },
                "tied_to": "model.embed_tokens.weight",
            },
            {
                "key": "model.layers.0.self_attn.q_proj.scales",
                "dtype": "BF16",
                "shape": [2048, 32],
                "role": "q_proj",
                "affine": { "bits": 4, "group_size": 64 },
            },
            { "key": "model.norm.weight", "dtype": "BF16", "shape": [2048], "role": "norm" },
        ] })
    );
}

#[test]
fn the_keys_of_a_donor_are_its_stored_keys() {
    let stage = Fixture::new("llama-3.2-1b-4bit", NONE);
    let donor = "surgery keys --donor model";
    assert_eq!(mlxcel(stage.dir(), donor).stdout.lines().count(), 372, "a tied head is not stored");
    let file = mlxcel(stage.dir(), &format!("{donor}/model.safetensors model.norm.*"));
    assert_eq!(file.stdout, "model.norm.weight    bf16 [2048]  norm\n");
    let json = mlxcel(stage.dir(), &format!("{donor} --json model.norm.*")).json();
    assert_eq!(json["keys"].as_array().map(Vec::len), Some(1));
    for (arguments, mentions) in [
        ("--donor model model.layers.*.mlp.upp_proj.weight", "`model.layers.*.mlp.up_proj.weight`"),
        ("--donor nowhere", "surgery::donor_not_found"),
        ("--donor model/config.json", "the configuration of a model"),
    ] {
        let run = mlxcel(stage.dir(), &format!("surgery keys {arguments}"));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{arguments}");
        assert!(run.stderr.contains(mentions), "{arguments}: {}", run.stderr);
    }
    for arguments in ["", "--model model --donor model"] {
        assert_eq!(mlxcel(stage.dir(), &format!("surgery keys {arguments}")).code, 2, "{arguments}");
    }
}

#[test]
fn options_are_the_same_everywhere_and_negative_numbers_are_refused_by_value() {
    let stage = Fixture::new("llama-3.2-1b", NONE);
    for command in ["plan surgery.yaml", "check surgery.yaml", "keys model.norm.weight"] {
        let long = mlxcel(stage.dir(), &format!("surgery {command} --model model --format json"));
        assert_eq!(long.code, 0, "{long:#?}");
        assert_eq!(mlxcel(stage.dir(), &format!("surgery {command} -m model --json")), long);
        let both = mlxcel(stage.dir(), &format!("surgery {command} -m model --json --format text"));
        assert_eq!(both.code, 2, "{both:#?}");
    }
    for option in ["-n -1", "--max-tokens -1", "--temp -1", "--top-p -0.5", "--top-k -3", "--seed -1"] {
        let run = mlxcel(stage.dir(), &format!("generate --model model --prompt x {option}"));
        assert_eq!(run.code, 2, "{option}");
        assert!(run.stderr.contains("must be a"), "{option}: {}", run.stderr);
    }
}

#[test]
fn a_pattern_without_keys_and_an_invalid_pattern_are_errors() {
    let stage = Fixture::new("llama-3.2-1b", NONE);
    for (pattern, mentions) in [
        ("model.layers.*.attn.o_proj.weight", ["surgery::no_match", "self_attn"]),
        ("model.layers.[0-", ["surgery::bad_glob", "model.layers.[0-"]),
    ] {
        let run = mlxcel(stage.dir(), &format!("surgery keys --model model {pattern}"));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{pattern}");
        assert!(mentions.iter().all(|text| run.stderr.contains(text)), "{pattern}: {}", run.stderr);
    }
    let run = mlxcel(stage.dir(), "surgery keys --model nowhere");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("model::model_unreadable"), "{}", run.stderr);
}

#[test]
fn a_code_is_explained_with_and_without_its_prefix() {
    let page = mlxcel(Path::new("."), "surgery explain no_match");
    assert_eq!(page.code, 0);
    assert!(page.stdout.starts_with("# surgery::no_match\n"), "{}", page.stdout);
    assert_eq!(mlxcel(Path::new("."), "surgery explain surgery::no_match"), page);
    assert_eq!(mlxcel(Path::new("."), "surgery explain Surgery::No_Match"), page);
}

#[test]
fn an_unknown_code_gets_the_nearest_one_as_a_hint() {
    let run = mlxcel(Path::new("."), "surgery explain no_mach");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("did you mean `no_match`?"), "{}", run.stderr);
}

#[test]
fn all_codes_are_listed_by_severity() {
    let run = mlxcel(Path::new("."), "surgery explain --all");
    assert_eq!(run, mlxcel(Path::new("."), "surgery explain"));
    let place = |text: &str| run.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", run.stdout));
    assert!(place("errors\n") < place("  syntax ") && place("  syntax ") < place("warnings\n"));
    assert!(
        place("warnings\n") < place("  tied_embedding ") && place("  tied_embedding ") < place("notes\n")
    );
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with("  ")).count(), mlxcel::Code::ALL.len());
}

#[test]
fn the_schema_is_a_json_schema() {
    let schema = mlxcel(Path::new("."), "surgery schema").json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn completions_and_manual_pages_come_from_the_command_line_itself() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = mlxcel(Path::new("."), &format!("completions {shell}"));
        assert_eq!(run.code, 0);
        for word in ["surgery", "no-donors"] {
            assert!(run.stdout.contains(word), "{shell} lacks {word}");
        }
        // The others' generators complete names of commands and options only.
        if ["bash", "zsh"].contains(&shell) {
            assert!(run.stdout.contains("donor_not_found"), "{shell}");
        }
    }
    let whole = mlxcel(Path::new("."), "man").stdout;
    assert!(whole.contains(".TH mlxcel 1") && whole.contains("\n.SH \"EXIT STATUS\"\n"), "{whole}");
    let page = mlxcel(Path::new("."), "man surgery check");
    assert!(
        page.stdout.contains(".TH mlxcel-surgery-check 1") && page.stdout.contains("no\\-donors"),
        "{}",
        page.stdout
    );
}

#[cfg(not(feature = "mlx"))]
#[test]
fn without_mlx_generate_and_score_answer_with_one_diagnostic() {
    for arguments in ["generate --model m --prompt x", "score --model m --tokens 1"] {
        let run = mlxcel(Path::new("."), arguments);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{arguments}");
        assert!(run.stderr.contains("needs MLX"), "{arguments}: {}", run.stderr);
    }
}

#[cfg(feature = "mlx")]
#[test]
fn errors_name_the_environment_variable_that_names_the_surgery_file() {
    let stage = Fixture::new("llama-3.2-1b", "version: 2\n");
    let run = |named: bool| {
        let mut command = crate::program::command(stage.dir());
        command.args(["generate", "--model", "model", "--tokens", "1"]).env("MLXCEL_SURGERY", "surgery.yaml");
        if named {
            command.args(["--surgery", "surgery.yaml"]);
        }
        crate::program::ended(command.output().expect("the program can be run"))
    };
    let (env, flag) = (run(false), run(true));
    assert_eq!((env.code, flag.code), (1, 1));
    assert!(env.stderr.starts_with("`MLXCEL_SURGERY` names the surgery file `surgery.yaml`\n"), "{env:#?}");
    assert!(!flag.stderr.contains("MLXCEL_SURGERY"), "{flag:#?}");
}

#[test]
fn a_usage_error_has_a_tip_with_the_right_command_line() {
    let stage = Fixture::new("llama-3.2-1b", NONE);
    for (arguments, tip) in [
        ("plan surgery.yaml", "`mlxcel surgery plan`"),
        ("schema", "`mlxcel surgery schema`"),
        ("surgery generate", "`mlxcel generate`"),
        ("surgery validate surgery.yaml", "`mlxcel surgery check`"),
        ("surgery plan --surgery surgery.yaml --model model", "`mlxcel surgery plan FILE --model DIR`"),
        ("surgery diff --model model --surgery surgery.yaml", "`mlxcel surgery diff DIR --surgery FILE`"),
        ("surgery diff model", "`--surgery FILE` to compare"),
        ("surgery keys model", "`mlxcel surgery keys --model model`"),
    ] {
        let run = mlxcel(stage.dir(), arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments}");
        assert!(run.stderr.contains("tip: ") && run.stderr.contains(tip), "{}", run.stderr);
        assert!(!run.stderr.contains("'-- ") && run.stderr.matches("tip:").count() == 1, "{}", run.stderr);
    }
    // The program may have another name.
    let renamed = stage.dir().join("mlxcel-0.1");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mlxcel"), &renamed).expect("a link");
    let run =
        std::process::Command::new(renamed).args(["surgery", "diff", "model"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&run.stderr).contains("`--surgery FILE` to compare"), "{run:?}");
    assert!(mlxcel(stage.dir(), "surgery plna").stderr.contains("'plan'"), "clap's own tips stay");
}

#[test]
fn a_missing_model_or_surgery_file_gets_the_nearest_name_as_a_hint() {
    let stage = Fixture::new("llama-3.2-1b", NONE);
    let said = |arguments: &str| {
        let run = mlxcel(stage.dir(), arguments);
        assert_eq!(run.code, 1, "{run:#?}");
        run.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let what = "a model is a directory with `config.json` and safetensors weights";
    let near = said("surgery plan surgery.yaml --model modle");
    assert!(near.contains(&format!("did you mean `model`? {what}")), "{near}");
    let far = said("surgery keys --model nope");
    assert!(far.contains(&format!("{what}, such as `model`")), "{far}");
    let nowhere = said("surgery keys --model no/such/place");
    assert!(nowhere.contains(what) && !nowhere.contains("such as"), "{nowhere}");
    let hub = said("surgery keys --model owner/name");
    assert!(hub.contains("does not download") && !hub.contains(what), "{hub}");
    let file = said("surgery plan surgery.yml --model model");
    assert!(
        file.contains("`surgery.yml` does not exist") && file.contains("did you mean `surgery.yaml`?"),
        "{file}"
    );
    let other = said("surgery plan entirely-different.yaml --model model");
    assert!(other.contains("relative to the current directory"), "{other}");
}

#[test]
fn a_comparison_without_surgery_is_a_usage_error() {
    for surgery in [None, Some("")] {
        let mut command = crate::program::command(Path::new("."));
        command.args(["generate", "--model", "model", "--prompt", "x", "--compare"]);
        if let Some(name) = surgery {
            command.env("MLXCEL_SURGERY", name);
        }
        let run = crate::program::ended(command.output().expect("the program can be run"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:#?}");
        assert!(run.stderr.contains("pass `--surgery <FILE>`"), "{}", run.stderr);
        assert!(run.stderr.contains("Usage: mlxcel generate "), "{}", run.stderr);
    }
    // With a surgery file, named either way, the usage is right; here the model, or MLX, is missing.
    let named = mlxcel(Path::new("."), "generate --model model --prompt x --compare --surgery none.yaml");
    assert_eq!(named.code, 1, "{named:#?}");
    let mut command = crate::program::command(Path::new("."));
    command.args(["generate", "--model", "model", "--prompt", "x", "--compare"]);
    let by_environment = command.env("MLXCEL_SURGERY", "none.yaml").output().expect("the program can be run");
    assert_eq!(crate::program::ended(by_environment).code, 1);
}

#[test]
fn the_synopsis_of_a_manual_page_has_the_values_of_options() {
    let page = mlxcel(Path::new("."), "man surgery check").stdout;
    let synopsis = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).expect("a synopsis");
    let plain = synopsis.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace('\\', "");
    assert_eq!(
        plain,
        "mlxcel surgery check [--model DIR] [--no-donors] [--format FORMAT] [--json] [--deny KIND] [--help] [--version] \
         FILES ..."
    );
}

#[test]
fn help_says_which_commands_read_no_weight() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let help = mlxcel(dir.path(), "surgery --help").stdout;
    let about = help.lines().next().unwrap_or_default();
    let (without, with) = about.split_once("without reading a weight").unwrap_or((about, ""));
    assert!(without.contains("Plan") && !without.contains("xport"), "{about}");
    assert!(with.contains("export") && with.contains("compare"), "{about}");
}
