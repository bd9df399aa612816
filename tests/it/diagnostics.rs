//! The pages that explain diagnostics: the committed document is the generated one, and its examples are true.

use std::fs;
use std::path::Path;

use mlxcel::internals::diagnostic;
use mlxcel::{Code, SurgeryFile};

/// Codes that the file alone can show; the examples of all others need a model and are at least well-formed.
const OF_THE_FILE: [Code; 13] = [
    Code::Syntax,
    Code::UnsupportedVersion,
    Code::UnknownOperation,
    Code::MissingField,
    Code::UnexpectedField,
    Code::UnknownField,
    Code::BadValue,
    Code::NotFinite,
    Code::RatioOutOfRange,
    Code::EmptyIds,
    Code::BadGlob,
    Code::WildcardMismatch,
    Code::FileUnreadable,
];

#[test]
fn the_document_of_diagnostics_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(&path, diagnostic::page()).expect("the document can be written");
    }
    let kept = fs::read_to_string(&path).expect("the document can be read");
    assert_eq!(kept, diagnostic::page(), "run the tests once with UPDATE_FIXTURES=1");
}

#[test]
fn the_examples_of_each_page_show_the_mistake_and_its_correction() {
    let mut examples = 0;
    for &code in Code::ALL {
        let page = diagnostic::explain(code);
        for (kind, yaml) in blocks(&page) {
            let file = SurgeryFile::parse(Path::new("example.yaml"), yaml.as_bytes());
            let found: Vec<Code> = file.diagnostics.iter().map(|one| one.code).collect();
            let wrong = kind == "wrong" && OF_THE_FILE.contains(&code);
            assert_eq!(found, if wrong { vec![code] } else { vec![] }, "{code}:\n{yaml}");
            examples += 1;
        }
        let shown = blocks(&page).iter().any(|(kind, _)| kind == "wrong");
        assert!(
            shown || !OF_THE_FILE.contains(&code) || code == Code::FileUnreadable,
            "{code} has no example"
        );
    }
    assert!(examples > 15, "only {examples} examples were found");
}

/// Blocks marked `yaml wrong` or `yaml right`.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```yaml ") {
            let yaml = lines
                .by_ref()
                .take_while(|line| *line != "```")
                .fold(String::new(), |yaml, line| yaml + line + "\n");
            blocks.push((kind.to_owned(), yaml));
        }
    }
    blocks
}
