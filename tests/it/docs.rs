//! Every YAML block of README.md and docs/ is planned.
//!
//! A comment before the block says on what: `<!-- on qwen3-4b -->`, a name in `fixtures/headers` or a directory of the
//! repository. Below it may stand `refused CODE`, and `donor PATH` with that donor's header lines; other donors have the
//! base's tensors. YAML of other programs has the comment `<!-- other yaml -->`. A block that begins with an operation stands for a file of that operation.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::Directives;
use crate::program::mlxcel;
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
            assert!(fence.is_empty(), "a fence stands alone in its line: {line}");
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

/// What a console block of the documentation shows below a command, a line each.
fn shown(page: &str, command: &str) -> Vec<String> {
    let mut lines = page.lines().skip_while(|line| *line != format!("$ mlxcel {command}"));
    assert!(lines.next().is_some(), "`{command}` is not in the documentation");
    lines.take_while(|line| *line != "```" && !line.starts_with("$ ")).map(str::to_owned).collect()
}

/// Checks lines that are shown; `…` stands for lines, or for the rest of one.
#[track_caller]
fn check_shown(shown: &[String], printed: &str) {
    let mut printed = printed.lines();
    let mut skip = false;
    for line in shown {
        if line.trim() == "…" {
            skip = true;
            continue;
        }
        let is_it = |printed: &&str| match line.strip_suffix('…') {
            Some(beginning) => printed.starts_with(beginning),
            None => printed == line,
        };
        let found = if skip { printed.find(is_it) } else { printed.next().filter(|printed| is_it(printed)) };
        assert!(found.is_some(), "{line}");
        skip = false;
    }
    assert!(skip || printed.next().is_none(), "there is more than is shown");
}

#[test]
fn what_the_documentation_shows_of_export_and_diff_is_what_they_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stage = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(root.join("fixtures"), stage.path().join("fixtures")).expect("a link");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("a page can be read");
    let first = blocks(&read("README.md")).into_iter().next().expect("the README has a surgery file");
    fs::write(stage.path().join("joy.yaml"), first.yaml).expect("a file");
    let page = read("docs/surgery.md");
    let models = "fixtures/models/tiny-tales";
    let export = format!("surgery export joy.yaml --model {models}/base-bf16 --output joyful");
    let run = mlxcel(stage.path(), &export);
    check_shown(&shown(&page, &export), &run.stderr);
    let diff = format!("surgery diff {models}/base {models}/tuned");
    let run = mlxcel(stage.path(), &diff);
    check_shown(&shown(&page, &diff), &run.stdout);
}
