//! Plans every YAML block of README.md and docs/*.md, compares printed output with the program's, and follows links.
//!
//! A comment before a block names the model: `<!-- on qwen3-4b -->`, a name in `fixtures/headers` or a directory of the
//! repository. Further lines of the comment are `refused CODE`, and `donor PATH` followed by that donor's header lines;
//! other donors have the base's tensors. YAML of other programs has the comment `<!-- other yaml -->`. A block that begins
//! with an operation is a file with that operation.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::Directives;
use crate::program::mlxcel;
#[cfg(feature = "mlx")]
use crate::program::{command, ended};
use crate::sparse;

#[test]
fn every_yaml_block_of_the_documentation_plans_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = vec![root.join("README.md")];
    let docs = fs::read_dir(root.join("docs")).expect("there are docs");
    pages.extend(
        docs.map(|entry| entry.expect("a page").path())
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    let mut planned = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page can be read");
        for block in blocks(&text) {
            let place = format!("{}:{}", page.display(), block.line);
            check(root, &place, &block);
            planned += 1;
        }
    }
    assert!(planned > 10, "only {planned} blocks were found");
}

/// A fenced block and the comment before it.
struct Block {
    line: usize,
    comment: String,
    yaml: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut comment) = (Vec::new(), String::new());
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(first) = line.strip_prefix("<!--") {
            first.clone_into(&mut comment);
            while !comment.contains("-->") {
                let (_, next) = lines.next().expect("a comment is closed");
                comment.extend(["\n", next]);
            }
            comment.truncate(comment.find("-->").unwrap_or(comment.len()));
        } else if let Some(fence) = line.trim_start().strip_suffix("```yaml") {
            assert!(fence.is_empty(), "a fence is alone on its line: {line}");
            let yaml = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            let yaml = yaml.flat_map(|line| [line, "\n"]).collect();
            blocks.push(Block { line: at + 1, comment: std::mem::take(&mut comment), yaml });
        } else if !line.trim().is_empty() {
            comment.clear();
        }
    }
    blocks
}

#[track_caller]
fn check(root: &Path, place: &str, block: &Block) {
    if block.comment.trim() == "other yaml" {
        serde_saphyr::from_str::<serde_json::Value>(&block.yaml)
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        return;
    }
    let directives = Directives::parse(block.comment.lines());
    let on = directives.on.as_deref().unwrap_or_else(|| panic!("{place}: `<!-- on MODEL -->` is missing"));
    let stage = tempfile::tempdir().expect("a temporary directory");
    let real = root.join(on);
    let model = if real.is_dir() {
        // Donors are then named from the root of the repository.
        std::os::unix::fs::symlink(root.join("fixtures"), stage.path().join("fixtures")).expect("a link");
        real
    } else {
        let dir = stage.path().join("model");
        sparse::checkpoint(on, &dir);
        dir
    };
    let head = if block.yaml.starts_with("- op:") { "version: 1\noperations:\n" } else { "" };
    let yaml = format!("{head}{}", block.yaml);
    fs::write(stage.path().join("surgery.yaml"), &yaml).expect("a file can be written");
    directives.make_donors(&yaml, on, stage.path());
    let run = mlxcel(stage.path(), &format!("surgery plan surgery.yaml --model {}", model.display()));
    match &directives.refused {
        None => assert_eq!(run.code, 0, "{place}: {}", run.stderr),
        Some(code) => {
            assert_eq!(run.code, 1, "{place}: {}", run.stdout);
            assert!(run.stderr.contains(&format!("::{code}")), "{place}: {}", run.stderr);
        }
    }
}

/// The lines that a console block of the documentation shows below a command.
fn shown(page: &str, command: &str) -> Vec<String> {
    let mut lines = page.lines().skip_while(|line| *line != format!("$ mlxcel {command}"));
    assert!(lines.next().is_some(), "`{command}` is not in the documentation");
    lines.take_while(|line| *line != "```" && !line.starts_with("$ ")).map(str::to_owned).collect()
}

/// Compares shown lines with printed ones. `…` matches any lines, or the rest of a line.
#[track_caller]
fn check_shown(shown: &[String], printed: &str) {
    let mut printed = printed.lines();
    let mut skip = false;
    for line in shown {
        if line.trim() == "…" {
            skip = true;
            continue;
        }
        let matches = |printed: &&str| match line.strip_suffix('…') {
            Some(beginning) => printed.starts_with(beginning),
            None => printed == line,
        };
        let found =
            if skip { printed.find(matches) } else { printed.next().filter(|printed| matches(printed)) };
        assert!(found.is_some(), "{line}");
        skip = false;
    }
    assert!(skip || printed.next().is_none(), "the program prints more than is shown");
}

/// A directory with the surgery file of the README, `joy.yaml`, and the fixtures.
fn readme_stage() -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stage = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(root.join("fixtures"), stage.path().join("fixtures")).expect("a link");
    let first = blocks(&page("README.md")).into_iter().next().expect("the README has a surgery file");
    fs::write(stage.path().join("joy.yaml"), first.yaml).expect("a file");
    stage
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a page can be read")
}

#[test]
fn shown_output_of_export_and_diff_is_what_they_print() {
    let stage = readme_stage();
    let page = page("docs/export.md");
    let models = "fixtures/models/tiny-tales";
    let export = format!("surgery export joy.yaml --model {models}/base-bf16 --output joyful");
    let run = mlxcel(stage.path(), &export);
    check_shown(&shown(&page, &export), &run.stderr);
    let diff = format!("surgery diff {models}/base {models}/tuned");
    let run = mlxcel(stage.path(), &diff);
    check_shown(&shown(&page, &diff), &run.stdout);
}

#[test]
fn the_shown_plan_is_what_plan_prints() {
    let stage = tempfile::tempdir().expect("a temporary directory");
    sparse::checkpoint("qwen3-4b-4bit", &stage.path().join("qwen3-4b-4bit"));
    let yaml = "version: 1\noperations:\n  - op: scale\n    pattern: \"model.layers.*.self_attn.o_proj.weight\"\n    \
                factor: 0.95\n";
    fs::write(stage.path().join("surgery.yaml"), yaml).expect("a file");
    let plan = "surgery plan surgery.yaml --model qwen3-4b-4bit";
    check_shown(&shown(&page("docs/surgery.md"), plan), &mlxcel(stage.path(), plan).stdout);
}

#[cfg(feature = "mlx")]
#[test]
fn the_shown_answer_and_report_are_what_generate_prints() {
    let stage = readme_stage();
    let arguments = ["generate", "--model", "fixtures/models/tiny-tales/base", "--surgery", "joy.yaml"];
    let prompt = ["--prompt", "One morning Anna", "-n", "40"];
    let output = command(stage.path()).args(arguments).args(prompt).output().expect("the program can be run");
    let run = ended(output);
    let typed = format!("{} --prompt \"One morning Anna\" -n 40", arguments.join(" "));
    check_shown(&shown(&page("README.md"), &typed), &run.stdout);
    let report = page("docs/generate.md");
    let report =
        report.lines().skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```");
    for line in report {
        assert!(run.stderr.contains(line), "{line}\n{}", run.stderr);
    }
}

/// All pages, as paths relative to the repository.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "fuzz/README.md"]
            .map(PathBuf::from)
            .into();
    for directory in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root.join(directory)).expect("there are docs");
        let names = entries.map(|entry| Path::new(directory).join(entry.expect("a page").file_name()));
        pages.extend(names.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> Vec<String> {
    let mut in_block = false;
    let mut anchors = Vec::new();
    for line in page.lines() {
        in_block ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            anchors.push(heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect());
        }
    }
    anchors
}

#[test]
fn every_link_of_the_documentation_has_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root.join(&page)).expect("a page can be read");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("https://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root.join(&page),
                _ => root.join(&page).parent().expect("a directory").join(file),
            };
            let found = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target)
                        .is_ok_and(|text| anchors(&text).iter().any(|one| one == anchor)));
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_source_file_that_the_documentation_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root.join(&page)).expect("a page can be read");
        for code in text.split('`').skip(1).step_by(2) {
            let is_path =
                ["src/", "tests/", "xtask/", "benches/"].iter().any(|start| code.starts_with(start));
            // Patterns and placeholders are not paths.
            if is_path && !code.contains(['*', '<', ' ', '\n']) && !root.join(code).exists() {
                missing.push(format!("{}: {code}", page.display()));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}
