//! Required fields and their values.

use super::*;

#[test]
fn a_version_that_is_not_one_is_the_only_mistake() {
    for version in ["2", "'1'", "1.0", "true", "[1]", "abc"] {
        let file = parse(&format!("version: {version}\noperation: 3\n"));
        let codes: Vec<Code> = file.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::UnsupportedVersion], "{version}");
    }
}

#[test]
fn an_empty_document_lacks_its_version() {
    for text in ["", "\n", "# nothing\n", "---\n", "~\n", "\u{feff}"] {
        check(text, &["missing_field: "]);
    }
}

#[test]
fn a_document_is_a_mapping_with_version_and_operations() {
    check("- op: scale\n", &["bad_value: op"]);
    check("text\n", &["bad_value: text"]);
    check("{}\n", &["missing_field: {", "missing_field: {"]);
    check("operations: []\n", &["missing_field: operations"]);
    check("version: 1\n", &["missing_field: version"]);
    check("version:\noperations: ~\n", &["missing_field: version", "missing_field: ~"]);
    check("version: 1\noperations:\n", &["missing_field: operations"]);
    check("version: 1\noperations: scale\n", &["bad_value: scale"]);
    check("version: 1\noperations:\n  op: scale\n", &["bad_value: operations"]);
    check("version: 1\noperations: [~, 3, [a]]\n", &["bad_value: ~", "bad_value: 3", "bad_value: ["]);
}

#[test]
fn a_misspelled_field_is_not_missing_as_well() {
    check("verison: 1\noperation: []\n", &["unknown_field: verison", "unknown_field: operation"]);
    check_operation("op: scale, patern: a, factor: 1", &["unknown_field: patern"]);
    check_operation("Op: scale, pattern: a, factor: 1", &["unknown_field: Op"]);
    check_operation("op: prune, pattern: a, granularity: layer, layers: [1]", &["unknown_field: layers"]);
}

#[test]
fn a_misplaced_field_stands_for_the_one_that_belongs_there() {
    check_operation("op: scale, pattern: a, alpha: 1", &["unexpected_field: alpha"]);
    check_operation("op: scale, pattern: a, alpha: 1, factor: 1", &["unexpected_field: alpha"]);
    check_operation(
        "op: prune, pattern: a, granularity: layer, head_ids: [1]",
        &["unexpected_field: head_ids"],
    );
    check_operation(
        "op: interpolate, pattern: a, source: d, ratio: 0.5, method: lerp",
        &["unexpected_field: source"],
    );
}

#[test]
fn x_keys_are_a_place_for_anchors_at_the_top_only() {
    check("x-a: 1\nversion: 1\nx-b: {c: d}\noperations: []\n", &[]);
    check_operation("op: scale, pattern: a, factor: 1, x-note: b", &["unknown_field: x-note"]);
    check_help(
        "version: 1\noperations:\n  - {op: scale, pattern: a, factor: 1, x-n: b}\n",
        "ignored only there",
    );
}

#[test]
fn an_operation_that_is_unknown_still_has_its_values_judged() {
    check_operation(
        "op: scael, pattern: '[', factor: x",
        &["unknown_operation: scael", "bad_glob: [", "bad_value: x"],
    );
    check_operation("pattern: a, foo: 1", &["missing_field: pattern", "unknown_field: foo"]);
    check_operation("op: 3", &["bad_value: 3"]);
    check_operation("op: ~, pattern: a", &["missing_field: ~"]);
    check_operation("op: SCALE, pattern: a", &["unknown_operation: SCALE"]);
}

#[test]
fn required_fields_are_named_at_the_operation() {
    check_operation("op: scale", &["missing_field: scale", "missing_field: scale"]);
    check_operation("op: replace, pattern: a", &["missing_field: replace", "missing_field: replace"]);
    check_operation("op: prune, pattern: a, layer_ids: [1]", &["missing_field: prune"]);
    check_operation("op: prune, pattern: a, granularity: layer", &["missing_field: prune"]);
    check_operation("op: prune, pattern: a, granularity: lair", &["bad_value: lair"]);
}

#[test]
fn null_is_missing_where_a_value_is_required_and_bad_where_it_is_not() {
    check_operation("op: scale, pattern: a, factor: ~", &["missing_field: ~"]);
    check_operation("op: add, pattern: a, source: d, alpha: null", &["bad_value: null"]);
    check_operation("op: scale, pattern: a, factor: 1, exclude: ", &["bad_value: exclude"]);
}

#[test]
fn numbers_are_numbers() {
    for factor in ["'2'", "abc", "[1]", "true", "1_000", "nan", "1/2", "{a: 1}"] {
        let marked = if factor.starts_with(['[', '{']) { &factor[..1] } else { factor };
        check_operation(
            &format!("op: scale, pattern: a, factor: {factor}"),
            &[&format!("bad_value: {marked}")],
        );
    }
    for factor in [".nan", ".inf", "-.inf", "1e999"] {
        check_operation(
            &format!("op: scale, pattern: a, factor: {factor}"),
            &[&format!("not_finite: {factor}")],
        );
    }
    for ratio in ["1.5", "-0.1", "2"] {
        check_operation(
            &format!("op: interpolate, pattern: a, source_a: a, source_b: b, ratio: {ratio}, method: lerp"),
            &[&format!("ratio_out_of_range: {ratio}")],
        );
    }
    check_help(
        "version: 1\noperations: [{op: scale, pattern: a, factor: '2'}]",
        "without quotes or other characters: `factor: 2`",
    );
}

#[test]
fn ids_are_whole_numbers_in_a_list() {
    let prune = |ids: &str| format!("op: prune, pattern: a, granularity: layer, layer_ids: {ids}");
    check_operation(&prune("[]"), &["empty_ids: ["]);
    check_operation(&prune("3"), &["bad_value: 3"]);
    check_operation(&prune("0-3"), &["bad_value: 0-3"]);
    check_operation(
        &prune("[-1, 2, 1.5, '3', ~]"),
        &["bad_value: -1", "bad_value: 1.5", "bad_value: '3'", "bad_value: ~"],
    );
    check_help(&format!("version: 1\noperations: [{{{}}}]", prune("3")), "`layer_ids: [3]`");
    for (ids, what) in [
        ("[010]", "leading zeros"),
        ("[99999999999999999999]", "too large"),
        ("[99999999999999999999999999999999999999999999]", "too large"),
        ("[-99999999999999999999]", "negative"),
        ("[1.5]", "not whole"),
        ("[1e3]", "not whole"),
    ] {
        let file = parse(&format!("version: 1\noperations: [{{{}}}]", prune(ids)));
        let messages: Vec<_> = file.diagnostics.iter().map(|found| found.message.as_str()).collect();
        assert!(matches!(messages[..], [message] if message.contains(what)), "{ids}: {messages:?}");
    }
    check_help(&format!("version: 1\noperations: [{{{}}}]", prune("[010]")), "`10`");
    check_help(&format!("version: 1\noperations: [{{{}}}]", prune("[00]")), "`0`");
}

#[test]
fn texts_are_texts() {
    check_operation("op: scale, pattern: 5, factor: 1", &["bad_value: 5"]);
    check_operation("op: scale, pattern: '', factor: 1", &["bad_glob: ''"]);
    check_operation("op: add, pattern: a, source: ''", &["bad_value: ''"]);
    check_operation("op: add, pattern: a, source: 12", &["bad_value: 12"]);
    check_operation("op: add, pattern: a, source: \"a\\0b\"", &["bad_value: \"a\\0b\""]);
    check_operation("op: scale, pattern: a, factor: 1, name: \"a\\nb\"", &["bad_value: \"a\\nb\""]);
    check_operation(
        "op: scale, pattern: a, factor: 1, exclude: [b, 3, ~]",
        &["bad_value: 3", "bad_value: ~"],
    );
}

#[test]
fn words_have_a_suggestion() {
    for (fields, help) in [
        ("op: scal, pattern: a, factor: 1", "did you mean `scale`?"),
        ("op: add, pattern: a, sorce: d", "did you mean `source`?"),
        ("op: prune, pattern: a, granularity: head, head_ids: [1]", "did you mean `attention_head`?"),
        ("op: prune, pattern: a, granularity: MLP-Channel, channel_ids: [1]", "did you mean `mlp_channel`?"),
        (
            "op: interpolate, pattern: a, source_a: a, source_b: b, ratio: 0, method: slrep",
            "did you mean `slerp`?",
        ),
    ] {
        check_help(&format!("version: 1\noperations: [{{{fields}}}]"), help);
    }
}

#[test]
fn fields_at_the_left_margin_are_not_missed_in_the_operation_above() {
    check(
        "version: 1\noperations:\n  - op: scale\npattern: a\nfactor: 2\n",
        &["unknown_field: pattern", "unknown_field: factor"],
    );
    check(
        "version: 1\noperations:\n  - op: scale\n  - op: scale\n    pattern: a\nfactor: 2\n",
        &["missing_field: scale", "missing_field: scale", "unknown_field: factor"],
    );
}

#[test]
fn fields_of_other_tools_are_translated_where_the_operation_is_known() {
    let file = |fields: &str| parse(&format!("version: 1\noperations: [{{{fields}}}]"));
    let help = |fields: &str| {
        let file = file(fields);
        let field = file.diagnostics.iter().find(|found| found.code == Code::UnknownField);
        field.and_then(|found| found.help.clone()).unwrap_or_default()
    };
    assert_eq!(help("op: frobnicate, pattern: a, t: 0.5"), "no operation has such a field");
    assert_eq!(help("pattern: a, t: 0.5"), "no operation has such a field");
    assert!(help("op: slerp, pattern: a, t: 0.5").starts_with("did you mean `ratio`? `interpolate` takes"));
    assert!(help("op: scal, pattern: a, t: 0.5").starts_with("did you mean `factor`? `scale` takes"));
    assert!(help("op: frobnicate, patern: a").starts_with("did you mean `pattern`?"));
    assert!(help("type: scale, pattern: a, factor: 2").starts_with("did you mean `op`?"));
    let codes: Vec<_> =
        file("type: scale, pattern: a, factor: 2").diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::UnknownField]);
}

#[test]
fn a_gradient_and_ids_without_commas_are_answered_with_what_to_write() {
    check_help(
        "version: 1\noperations: [{op: scale, pattern: a, factor: [0, 0.5, 1]}]",
        "each range of them",
    );
    check_help("version: 1\noperations: [{op: scale, pattern: a, factor: [2]}]", "without brackets");
    let prune = "version: 1\noperations: [{op: prune, pattern: a, granularity: layer, layer_ids: [1 2 30]}]";
    check_help(prune, "`1, 2, 30`");
    check_help(&prune.replace("[1 2 30]", "0-2"), "`layer_ids: [0, 1, 2]`");
    check_help("version: 1\noperations: [{op: scale, pattern: a, factor: 50%}]", "`factor: 0.5`");
    let lists = "op: interpolate, pattern: a, sources: [a, b], ratio: 0.5, method: lerp";
    check_operation(lists, &["unknown_field: sources"]);
    check_help("version = 1\noperations = []\n", "colons between names and values");
    check_help("version: 1.0\noperations: []\n", "a whole number");
}
