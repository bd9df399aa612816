//! Mistakes in the YAML's layout: their places and helps.

use std::path::Path;

use super::SurgeryFile;

/// A file with one mistake of the YAML: what its label shows and what its help says.
#[track_caller]
fn check(text: &str, labelled: &str, help: &str) {
    let file = SurgeryFile::parse(Path::new("s.yaml"), text.as_bytes());
    let [found] = &file.diagnostics[..] else { panic!("{:#?}", file.diagnostics) };
    assert_eq!(found.code.name(), "syntax", "{found:?}");
    assert_eq!(&text[found.labels[0].span.clone()], labelled, "{found:?}");
    let said = found.help.as_deref().expect("every mistake has a help");
    assert!(said.contains(help), "{said}");
}

const HEAD: &str = "version: 1\noperations:\n";

#[track_caller]
fn entry(lines: &str, labelled: &str, help: &str) {
    check(&format!("{HEAD}{lines}"), labelled, help);
}

#[test]
fn missing_spaces_and_colons_are_shown_where_they_are_missing() {
    entry("  - op: scale\n    factor:2\n    pattern: x\n", "factor:2", "after the colon: `factor: 2`");
    entry("  - op:scale\n    pattern: x\n", "op:scale", "after the colon: `op: scale`");
    entry("  -op: scale\n   pattern: x\n", "-op", "after the dash: `- op: scale`");
    check("version:1\noperations: []\n", "version:1", "`version: 1`");
    check("version: 1\noperations\n  - op: scale\n", "operations", "after the name: `operations:`");
    entry("  - op scale\n    pattern: x\n", "op", "after the name: `op: scale`");
    entry("  - op: scale\n    factor\n", "factor", "after the name: `factor:`");
    check("version: 1\n--\noperations: []\n", "--", "remove the line");
}

#[test]
fn indentation_is_compared_with_the_line_above() {
    let column = "indent this one by 4 spaces, as `op` above";
    entry("  - op: scale\n      pattern: x\n", "pattern", column);
    entry("  - op: scale\n   pattern: x\n", "pattern", column);
    entry("  - op: scale\n  pattern: x\n", "pattern", column);
    entry(
        "  - op: scale\n    # why\n\n    pattern: a.*\n     factor: 2\n",
        "factor",
        "4 spaces, as `pattern`",
    );
    let dash = "indent this one by 2 spaces";
    entry("  - op: scale\n    factor: 2\n - op: scale\n", "op", dash);
    entry("  - op: scale\n    factor: 2\n    - op: scale\n", "op", dash);
    entry("- op: scale\npattern: x\n\nfactor: 2\n- op: scale\n", "pattern", "2 spaces, as `op` above");
    check(" version: 1\noperations: []\n", "operations", "left margin");
    check("version: 1\n operations: []\n", "operations", "left margin");
    check("version: 1\n- operations:\n  - op: scale\n", "operations", "without a dash");
    check("version: 1\n  - op: scale\n    factor: 2\n", "op", "`operations:` on a line of its own");
}

#[test]
fn tabs_and_other_spaces_in_the_indentation_are_shown() {
    entry("\t- op: scale\n", "\t", "replace the tab");
    check("\tversion: 1\noperations: []\n", "\t", "replace the tab");
    entry("  - op: scale\n\tpattern: x\n", "\t", "replace the tab");
    entry("  - op: scale\n    \tpattern: x\n", "\t", "replace the tab");
    entry("  -\top: scale\n    \tpattern: x\n", "\t", "replace the tab");
    entry("  - op: scale\n\u{a0}   pattern: x\n    factor: 2\n", "\u{a0}", "no-break space");
}

#[test]
fn quotes_and_brackets_that_lack_their_other_end_are_shown() {
    entry("  - op: scale\n    pattern: \"x\n", "\"", "close it with `\"`");
    entry("  - op: scale\n    pattern: 'x\n", "'", "write `''` for `'`");
    entry("  - op: scale\n    pattern: \"x\"y\n", "y", "the whole value");
    entry("  - op: prune\n    layer_ids: [1, 2\n", "[", "close it with `]`");
    entry("  - op: prune\n    layer_ids: [1, 2\n    pattern: x\n", "[", "before the next field");
    entry("  - {op: scale, factor: 2\n", "{", "close it with `}`");
    entry("  - {op: scale factor: 2}\n", ":", "put a comma");
    check("version: 1\noperations: []\n]\n", "]", "remove it");
}

#[test]
fn values_that_are_no_plain_text_are_to_be_quoted() {
    entry("  - op: scale\n    name: a: b\n", "a: b", "`name: \"a: b\"`");
    entry("  - op: scale\n    pattern: |x\n", "|", "quote text");
    check("version: 1\noperations: - op: scale\n", "-", "on the next line");
    check("%YAML 1.1\nversion: 1\n", "%YAML 1.1", "no directives");
}
