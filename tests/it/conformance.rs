//! Planning the cases of `fixtures/conformance`: which are refused and why, how many tensors the others edit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mlxcel::internals::diagnostic::{Look, Source, render};
use mlxcel::internals::plan::refuse;
use mlxcel::{Checkpoint, Code, Diagnostic, Plan, Refusal, Severity, SurgeryFile};
use serde::Deserialize;

pub(crate) fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance").join(folder)
}

fn cases<T: for<'de> Deserialize<'de>>(folder: &Path) -> BTreeMap<String, T> {
    let text = fs::read_to_string(folder.join("cases.json")).expect("the list of cases can be read");
    serde_json::from_str(&text).expect("the list of cases is JSON")
}

/// What the command line does: the file and the model are read, and one run reports the mistakes of both.
pub(crate) fn plan(file: &Path, model: &Path) -> (Source, Result<Plan, Refusal>) {
    let file = SurgeryFile::read(file);
    let source = file.source.clone();
    let outcome = match Checkpoint::open(model) {
        Ok(base) => mlxcel::plan(&file, base),
        Err(errors) => Err(refuse(&file, &errors)),
    };
    (source, outcome)
}

pub(crate) fn errors(refusal: &Refusal) -> Vec<&Diagnostic> {
    refusal.diagnostics.iter().filter(|d| d.severity() == Severity::Error).collect()
}

pub(crate) fn text(source: &Source, diagnostics: &[Diagnostic]) -> String {
    render(diagnostics, Some(source), Look::PLAIN)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SurgeryCase {
    model: String,
    edited: Option<usize>,
    refused: Option<String>,
    tie: Option<String>,
}

#[test]
fn surgery_cases_are_planned_or_refused_as_named() {
    let folder = fixtures("surgery");
    for (name, case) in cases::<SurgeryCase>(&folder) {
        let model = folder.join("models").join(&case.model);
        let (source, outcome) = plan(&folder.join(&name).join("surgery.yaml"), &model);
        match (outcome, case.edited, case.refused) {
            (Ok(plan), Some(edited), None) => {
                let seen = text(&source, plan.diagnostics());
                assert_eq!(plan.summary().tensors_edited, edited, "{name}\n{seen}");
                assert_eq!(plan.programs().len(), edited, "{name}");
                assert_eq!(plan.digest().is_none(), edited == 0, "{name}");
                let warned = plan.diagnostics().iter().any(|d| d.code == Code::TiedEmbedding);
                let tie = case.tie.as_deref() == Some("broken");
                assert_eq!((warned, !plan.untied().is_empty()), (tie, tie), "{name}\n{seen}");
                let shared = plan.programs().iter().any(|program| program.shared_with().is_some());
                assert_eq!(shared, case.tie.as_deref() == Some("kept"), "{name}");
            }
            (Err(refusal), None, Some(code)) => {
                let codes: Vec<&str> = errors(&refusal).iter().map(|d| d.code.name()).collect();
                assert_eq!(codes, [code], "{name}\n{}", text(&source, &refusal.diagnostics));
            }
            (Ok(_), ..) => panic!("{name} was planned"),
            (Err(refusal), ..) => panic!("{name}\n{}", text(&source, &refusal.diagnostics)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BadInput {
    expect: OneOrMany,
    mentions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[test]
fn bad_input_gives_one_error_that_says_what_it_is() {
    let folder = fixtures("bad-input");
    for (name, case) in cases::<BadInput>(&folder) {
        let folder = folder.join(&name);
        let (source, outcome) = plan(&folder.join("surgery.yaml"), &folder.join("model"));
        let expected = match case.expect {
            OneOrMany::One(code) => vec![code],
            OneOrMany::Many(codes) => codes,
        };
        match outcome {
            Ok(_) => assert_eq!(expected, ["ok"], "{name}"),
            Err(refusal) => {
                let text = text(&source, &refusal.diagnostics);
                let codes: Vec<&str> = errors(&refusal).iter().map(|d| d.code.name()).collect();
                assert_eq!(codes.len(), 1, "{name}\n{text}");
                assert!(expected.iter().any(|code| codes.contains(&code.as_str())), "{name}\n{text}");
                for mention in case.mentions {
                    assert!(text.contains(&mention), "{name} does not mention {mention}\n{text}");
                }
            }
        }
    }
}
