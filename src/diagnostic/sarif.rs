//! Diagnostics as a SARIF 2.1.0 log (OASIS, 2020), for code scanning.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::position::Lines;
use super::{Code, Diagnostic, Severity, Source, Span, explain, uri};

/// One log with one run: a result for each diagnostic of each file, and a rule with help for each code that occurs.
/// Columns count Unicode code points and ends are exclusive, as SARIF requires.
#[must_use]
pub fn sarif(files: &[(&[Diagnostic], Option<&Source>)]) -> Value {
    let codes: BTreeSet<Code> =
        files.iter().flat_map(|(found, _)| found.iter().map(|one| one.code)).collect();
    let codes: Vec<Code> = codes.into_iter().collect();
    let results: Vec<Value> = files
        .iter()
        .flat_map(|(found, source)| {
            let place =
                source.map(|source| Place { uri: uri::uri(&source.path), lines: Lines::new(&source.text) });
            found.iter().map(|one| result(one, place.as_ref(), &codes)).collect::<Vec<_>>()
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mlxcel",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    let page = explain::explain(code);
    json!({
        "id": code.to_string(),
        "name": pascal(code.name()),
        "shortDescription": { "text": code.summary() },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

fn result(diagnostic: &Diagnostic, place: Option<&Place<'_>>, codes: &[Code]) -> Value {
    let mut result = Map::new();
    result.insert("ruleId".to_owned(), diagnostic.code.to_string().into());
    result.insert("ruleIndex".to_owned(), codes.iter().position(|code| *code == diagnostic.code).into());
    result.insert("level".to_owned(), level(diagnostic.severity()).into());
    result.insert("message".to_owned(), json!({ "text": diagnostic.with_help() }));
    if let Some(place) = place {
        let (first, others) = match diagnostic.labels.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, [].as_slice()),
        };
        let location = place.location(first.map(|label| &label.span));
        result.insert("locations".to_owned(), json!([location]));
        if !others.is_empty() {
            let related = others.iter().enumerate().map(|(at, label)| {
                let mut location = place.location(Some(&label.span));
                location["id"] = json!(at + 1);
                if !label.message.is_empty() {
                    location["message"] = json!({ "text": label.message });
                }
                location
            });
            result.insert("relatedLocations".to_owned(), related.collect());
        }
    }
    result.into()
}

struct Place<'t> {
    uri: String,
    lines: Lines<'t>,
}

impl Place<'_> {
    /// The place of a span, or the whole file.
    fn location(&self, span: Option<&Span>) -> Value {
        let mut physical = json!({ "artifactLocation": { "uri": self.uri } });
        if let Some(span) = span {
            let (start, end) = self.lines.range(span);
            physical["region"] = json!({
                "startLine": start.line,
                "startColumn": start.column,
                "endLine": end.line,
                "endColumn": end.column,
            });
        }
        json!({ "physicalLocation": physical })
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    }
}

fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut characters = word.chars();
        characters.next().map(|first| first.to_uppercase().chain(characters).collect::<String>())
    };
    name.split('_').filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_rule_a_place_and_related_places() {
        let source = Source { path: "my files/s.yaml".into(), text: "version: 1\né: [1]\n".into() };
        let found = [
            Diagnostic::new(Code::NoEffect, "nothing changes"),
            Diagnostic::new(Code::UnknownField, "unknown field `é`")
                .label(11..13, "")
                .label(0..7, "here")
                .help("drop it"),
        ];
        let log = sarif(&[(&found, Some(&source))]);
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "surgery::unknown_field");
        assert_eq!(run["tool"]["driver"]["rules"][1]["defaultConfiguration"]["level"], "note");
        assert_eq!(run["results"][0]["ruleIndex"], 1);
        assert_eq!(
            run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "my%20files/s.yaml"
        );
        assert_eq!(run["results"][0]["locations"][0]["physicalLocation"]["region"], Value::Null);
        let unknown = &run["results"][1];
        assert_eq!(unknown["message"]["text"], "unknown field `é`\nhelp: drop it");
        assert_eq!(
            unknown["locations"][0]["physicalLocation"]["region"],
            json!({ "startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 2 })
        );
        assert_eq!(unknown["relatedLocations"][0]["message"]["text"], "here");
    }
}
