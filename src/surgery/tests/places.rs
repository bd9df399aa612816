//! The places of labels, also through anchors and merges.

use super::*;

#[test]
fn a_repeated_field_is_a_mistake_of_syntax_beside_the_others() {
    check(
        "version: 1\noperations:\n  - op: scale\n    pattern: a\n    factor: 1\n    factor: x\n    foo: 1\n",
        &["syntax: factor", "unknown_field: foo"],
    );
    check("version: 1\nversion: 1\noperations: []\n", &["syntax: version"]);
}

#[test]
fn a_mistake_in_a_pattern_is_marked_within_it() {
    check_operation("op: scale, factor: 1, pattern: 'a.[9-0].b'", &["bad_glob: 9-0"]);
    check_operation("op: scale, factor: 1, pattern: \"a.[9-0].b\"", &["bad_glob: 9-0"]);
    check(
        "version: 1\noperations:\n  - op: scale\n    factor: 1\n    pattern: a.[9-0].b\n",
        &["bad_glob: 9-0"],
    );
    check_operation("op: scale, factor: 1, pattern: \"a\\x2e[9-0]\"", &["bad_glob: \"a\\x2e[9-0]\""]);
    check_operation("op: scale, factor: 1, pattern: 'it''s.[9-0]'", &["bad_glob: 'it''s.[9-0]'"]);
    check(
        "version: 1\noperations:\n  - op: scale\n    factor: 1\n    pattern: |-\n      a.[9-0]\n\n",
        &["bad_glob: 9-0"],
    );
    check(
        "version: 1\noperations:\n  - op: scale\n    factor: 1\n    pattern: >\n      a\n      [9-0]\n",
        &["bad_glob: a\n      [9-0]"],
    );
}

#[test]
fn wildcards_and_captures_are_counted() {
    let replace = |pattern: &str, key: &str| {
        format!("op: replace, source: d, pattern: '{pattern}', source_key: '{key}'")
    };
    check_operation(&replace("a.*.b.*", "c.*"), &["wildcard_mismatch: 'c.*'"]);
    check_operation(&replace("a", "c.*"), &["wildcard_mismatch: 'c.*'"]);
    check_operation(&replace("a.{b,c*}", "c.*"), &["bad_glob: *"]);
    check_operation(
        &(replace("a", "c.*") + ", ratio: 1"),
        &["wildcard_mismatch: 'c.*'", "unexpected_field: ratio"],
    );
    check_operation(&replace(r"a.\*.[*].*", "c.*"), &[]);
    check_operation("op: scale, factor: 1, pattern: 'a.{b,c*}'", &[]);
}

#[test]
fn values_through_aliases_are_marked_at_both_places() {
    let file = parse("version: 1\nx-f: &f abc\noperations:\n  - {op: scale, pattern: a, factor: *f}\n");
    let labels: Vec<&str> =
        file.diagnostics[0].labels.iter().map(|label| &file.source.text[label.span.clone()]).collect();
    assert_eq!(labels, ["abc", "*f"]);
}

#[test]
fn a_mistake_that_is_used_twice_is_one_mistake() {
    let file =
        parse("version: 1\noperations:\n  - &op {op: scale, pattern: '[', factor: 1}\n  - *op\n  - *op\n");
    assert_eq!(file.diagnostics.len(), 1);
    assert_eq!(file.diagnostics[0].labels.len(), 3);
}

#[test]
fn merge_keys_give_fields_and_own_fields_win() {
    let text = "version: 1\nx-d: &d {op: scale, factor: 2}\noperations:\n  - {<<: *d, pattern: a}\n  - {<<: *d, pattern: b, factor: 3}\n";
    let file = parse(text);
    assert_eq!(file.diagnostics, []);
    let factors: Vec<f64> = file
        .operations
        .iter()
        .map(|op| match &op.kind {
            Kind::Scale { factor } => factor.value,
            _ => f64::NAN,
        })
        .collect();
    assert_eq!(factors, [2.0, 3.0]);
    assert!(file.operations[0].op.alias.is_some());
}

#[test]
fn operations_without_a_mistake_are_kept_with_their_places() {
    let file = parse(
        "version: 1\noperations:\n  - {op: scale, pattern: a, factor: x}\n  - {op: scale, pattern: a, factor: 1}\n",
    );
    let kept: Vec<(usize, usize, bool)> =
        file.operations.iter().map(|op| (op.index, op.line, op.sound)).collect();
    assert_eq!(kept, [(0, 3, false), (1, 4, true)]);
}

#[test]
fn unquoted_patterns_are_answered_with_quotes() {
    let value = |value: &str| {
        format!("version: 1\noperations:\n  - op: scale\n    pattern: {value}\n    factor: 1\n")
    };
    for pattern in
        ["*.weight", "[ab]*", "{a,b}.weight", "[ab]", "*.{a,b}.w", "{a,b}", "*norm", "[!a]*", "!a*.w"]
    {
        check_help(&value(pattern), &format!("\"{pattern}\""));
    }
    check_help(&value("\"model\\.x\""), "single quotes");
    check_help("version: 1\noperations:\n  - {op: scale, pattern: a.[0-3].b, factor: 1}\n", "\"a.[0-3].b\"");
    check_help(
        "version: 1\noperations:\n  - op: scale\n    pattern: a\n    factor: 1\n    exclude:\n      - *.bias\n",
        "\"*.bias\"",
    );
}

#[test]
fn a_character_that_yaml_does_not_know_is_marked_itself() {
    for (value, sign) in
        [("@a", "@"), ("%a", "%"), ("`a", "`"), ("ab\u{7}c", "\u{7}"), ("\u{1b}[0m", "\u{1b}")]
    {
        let text = format!("version: 1\noperations:\n  - {{op: scale, pattern: {value}, factor: 1}}\n");
        check(&text, &[&format!("syntax: {sign}")]);
        check_help(&text, if sign.starts_with(char::is_control) { "remove it" } else { "quote text" });
    }
}

#[test]
fn what_is_not_one_yaml_document_is_syntax() {
    check("version: 1\noperations:\n\t- op: scale\n", &["syntax: \t"]);
    check("version: 1\n---\nversion: 1\n", &["syntax: v"]);
    check("version: 1\noperations: [\n", &["syntax: ["]);
    check("version: 1\noperations: &x [*x]\n", &["syntax: *"]);
    check("version: 1\n<<: 3\noperations: []\n", &["syntax: 3"]);
    check("version: 1\n\u{0}\n", &["syntax: \u{0}"]);
    let file = SurgeryFile::parse(Path::new("x"), b"version: 1\nname: \xff\xfe\n");
    assert_eq!(
        (file.diagnostics[0].code, file.diagnostics[0].labels[0].span.clone()),
        (Code::Syntax, 17..20)
    );
}

#[test]
fn a_merge_is_used_where_it_is_asked_for() {
    let text = "version: 1\nx-d: &d\n  op: scale\n  pattern: a\n  factor: 2\noperations:\n  - <<: *d\n  - *d\n  - factor: 3\n    <<: *d\n";
    let file = parse(text);
    assert_eq!(file.diagnostics, []);
    assert_eq!(file.operations.iter().map(|op| op.line).collect::<Vec<_>>(), [7, 8, 10]);
    let marked =
        file.operations[0].pattern.label_at_use(crate::diagnostic::Diagnostic::new(Code::NoMatch, ""), "");
    let places: Vec<&str> = marked.labels.iter().map(|label| &text[label.span.clone()]).collect();
    assert_eq!(places, ["*d", "a"]);
}

#[test]
fn several_merges_are_a_list_and_the_first_wins() {
    let merged = |merge: &str| {
        format!(
            "version: 1\nx-a: &a {{factor: 2, op: scale}}\nx-b: &b {{factor: 3, pattern: a}}\noperations:\n  - {{{merge}}}\n"
        )
    };
    let file = parse(&merged("<<: [*a, *b]"));
    assert_eq!(file.diagnostics, []);
    let Kind::Scale { factor } = &file.operations[0].kind else { panic!() };
    assert_eq!(factor.value.to_string(), "2");
    check(&merged("<<: *a, <<: *b"), &["syntax: <<"]);
    check(&merged("<<: *a, <<: [*b]"), &["syntax: ["]);
    check(&merged("<<: [*a, 3], pattern: a"), &["syntax: ["]);
    check(&merged("<<: *a, '<<': *b, pattern: c"), &["unknown_field: '<<'"]);
}

#[test]
fn lines_end_with_a_carriage_return_too() {
    let file = parse("version: 1\roperations:\r  - op: scale\r    pattern: a\r    factor: 2\r");
    assert_eq!((file.diagnostics.as_slice(), file.operations[0].line), (&[][..], 3));
    check("version: 1\roperations: [\r", &["syntax: ["]);
}

#[test]
fn what_is_not_sound_is_kept_where_no_mistake_follows_from_a_mistake() {
    let kept = |fields: &str| {
        let file = parse(&format!("version: 1\noperations:\n  - {{{fields}}}\n"));
        assert!(!file.diagnostics.is_empty());
        (file.operations.len(), file.fragments.len())
    };
    for fields in [
        "op: scale, pattern: a, factor: x",
        "op: scale, pattern: a",
        "op: scale, pattern: a, factr: 2",
        "op: scale, pattern: a, factor: 1, factor: 2",
        "op: scale, pattern: a, alpha: 2",
        "op: scale, pattern: a, factor: 2, name: 3",
        "op: prune, pattern: a, granularity: layer, layer_ids: [1, x]",
    ] {
        assert_eq!(kept(fields), (1, 0), "{fields}");
    }
    for fields in [
        "op: skale, pattern: a, factor: 2",
        "op: scale, pattern: a, factor: 2, but: b",
        "op: scale, pattern: a, factor: 2, exclude: 3",
        "op: scale, pattern: a, pattern: b, factor: 2",
        "op: scale, pattern: a, factor: 2, source: d",
        "op: add, pattern: a, source: 3",
        "op: prune, pattern: a, granularity: layer, layer_ids: [x]",
        "op: replace, pattern: a, source: d, source_key: '*'",
    ] {
        assert_eq!(kept(fields), (0, 1), "{fields}");
    }
}
