use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Code, Severity};

fn parse(text: &str) -> SurgeryFile {
    SurgeryFile::parse(Path::new("dir/surgery.yaml"), text.as_bytes())
}

/// The operation of a file that has one and no mistake.
#[track_caller]
fn accepted(fields: &str) -> Operation {
    let mut file = parse(&format!("version: 1\noperations:\n  - {{{fields}}}\n"));
    assert_eq!(file.diagnostics, [], "{fields}");
    assert_eq!(file.operations.len(), 1);
    file.operations.remove(0)
}

/// Every mistake as `code: text at its first label`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let file = parse(text);
    let found: Vec<String> = file
        .diagnostics
        .iter()
        .map(|found| {
            let place = found.labels.first().map_or("", |label| &file.source.text[label.span.clone()]);
            format!("{}: {place}", found.code.name())
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn check_operation(fields: &str, expected: &[&str]) {
    check(&format!("version: 1\noperations:\n  - {{{fields}}}\n"), expected);
}

#[track_caller]
fn check_help(text: &str, help: &str) {
    let file = parse(text);
    let given = file.diagnostics.first().and_then(|found| found.help.clone()).unwrap_or_default();
    assert!(given.contains(help), "{given:?} lacks {help:?}");
}

#[test]
fn an_empty_list_is_a_file_without_operations() {
    for text in [
        "version: 1\noperations: []\n",
        "{\"version\": 1, \"operations\": []}",
        "\u{feff}version: 1\r\noperations: []\r\n",
    ] {
        let file = parse(text);
        assert!(file.diagnostics.is_empty() && file.operations.is_empty(), "{text:?}");
    }
}

#[test]
fn scale_has_a_factor() {
    let op = accepted("op: scale, pattern: 'a.*', factor: 2, name: gain, exclude: ['a.b', 'a.c']");
    let Kind::Scale { factor } = op.kind else { panic!() };
    assert_eq!((factor.value, op.name.as_deref(), op.exclude.len()), (2.0, Some("gain"), 2));
    assert_eq!((op.index, op.line, op.pattern.value.as_str()), (0, 3, "a.*"));
}

#[test]
fn add_takes_the_donor_once_where_alpha_is_absent() {
    let op = accepted("op: add, pattern: a, source: d/x.safetensors, exclude: b");
    let Kind::Add { source, alpha } = op.kind else { panic!() };
    assert_eq!((source.value.as_path(), alpha.value), (Path::new("dir/d/x.safetensors"), 1.0));
    assert_eq!(alpha.span, op.op.span);
}

#[test]
fn absolute_donors_stay_and_nothing_is_expanded() {
    for (source, resolved) in [("/x/d", "/x/d"), ("~/d", "dir/~/d"), ("../d", "dir/../d"), ("$D", "dir/$D")] {
        let op = accepted(&format!("op: add, pattern: a, source: '{source}'"));
        let Kind::Add { source, .. } = op.kind else { panic!() };
        assert_eq!(source.value, Path::new(resolved));
    }
}

#[test]
fn prune_has_the_ids_of_its_granularity() {
    for (granularity, field, expected) in [
        ("layer", "layer_ids", Granularity::Layer),
        ("attention_head", "head_ids", Granularity::AttentionHead),
        ("mlp_channel", "channel_ids", Granularity::MlpChannel),
    ] {
        let op =
            accepted(&format!("op: prune, pattern: a, granularity: {granularity}, {field}: [3, 0x10, 3]"));
        let Kind::Prune { granularity, ids } = op.kind else { panic!() };
        assert_eq!(granularity.value, expected);
        assert_eq!(ids.value.iter().map(|id| id.value).collect::<Vec<_>>(), [3, 16, 3]);
    }
}

#[test]
fn replace_has_a_template() {
    let op = accepted("op: replace, pattern: 'a.*.{b,c}.*', source: d, source_key: 'x.*.y*'");
    let Kind::Replace { source_key, .. } = op.kind else { panic!() };
    assert_eq!(source_key.value.as_str(), "x.*.y*");
}

#[test]
fn interpolate_has_two_donors_a_ratio_and_a_method() {
    let op = accepted("op: interpolate, pattern: '*', source_a: a, source_b: b, ratio: 1, method: slerp");
    let Kind::Interpolate { ratio, method, .. } = op.kind else { panic!() };
    assert_eq!((ratio.value, method.value), (1.0, Method::Slerp));
}

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
    check("operations: []\n", &["missing_field: operations"]);
    check("version: 1\n", &["missing_field: version"]);
    check("version:\noperations: ~\n", &["missing_field: version", "missing_field: ~"]);
    check("version: 1\noperations:\n", &["missing_field: operations"]);
    check("version: 1\noperations: scale\n", &["bad_value: scale"]);
    check("version: 1\noperations:\n  op: scale\n", &["bad_value: operations"]);
    check("version: 1\noperations: [~, 3, [a]]\n", &["bad_value: ~", "bad_value: 3", "bad_value: ["]);
}

#[test]
fn a_misspelt_field_is_not_missing_as_well() {
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
        "at the top level only",
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
        "without quotes and underscores: `2`",
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
    let kept: Vec<(usize, usize)> = file.operations.iter().map(|op| (op.index, op.line)).collect();
    assert_eq!(kept, [(1, 4)]);
}

#[test]
fn unquoted_patterns_are_answered_with_quotes() {
    let value = |value: &str| {
        format!("version: 1\noperations:\n  - op: scale\n    pattern: {value}\n    factor: 1\n")
    };
    for pattern in ["*.weight", "[ab]*", "{a,b}.weight", "[ab]", "*.{a,b}.w", "{a,b}", "*norm"] {
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
fn what_is_not_one_yaml_document_is_syntax() {
    check("version: 1\noperations:\n\t- op: scale\n", &["syntax: -"]);
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
fn hostile_yaml_is_refused_at_once() {
    let mut bomb = "x-0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for n in 1..12 {
        let line = format!("x-{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","));
        bomb.push_str(&line);
    }
    let deep = format!("version: {}1", "[".repeat(100_000));
    for text in [bomb, deep, "a: &x [*x]".to_owned()] {
        let file = parse(&text);
        assert_eq!(file.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::Syntax]);
    }
    let large = SurgeryFile::parse(Path::new("x"), &vec![b' '; (4 << 20) + 1]);
    assert_eq!(large.diagnostics[0].code, Code::FileUnreadable);
}

#[test]
fn files_full_of_mistakes_are_answered_in_time_and_not_at_length() {
    let start = std::time::Instant::now();
    let fields = (0..6_000).map(|n| format!("f{n}: 1")).collect::<Vec<_>>().join(", ");
    let operations = "{op: scale, pattern: a}, ".repeat(4_000);
    let alias = format!("&bad {{op: scael}}, {}", "*bad, ".repeat(2_000));
    for text in [
        format!("{{version: 1, {fields}, operations: []}}"),
        format!("{{version: 1, operations: [{operations}]}}"),
        format!("{{version: 1, operations: [{alias}]}}"),
        format!("{{version: 1, operations: [{{op: scale, {fields}}}]}}"),
        format!("version: 1\noperations: [{{op: prune, layer_ids: [{}]}}]", "-1, ".repeat(6_000)),
        format!(
            "version: 1\noperations: [{{op: {}, pattern: '{}'}}]",
            "o".repeat(1 << 20),
            "*".repeat(1 << 20)
        ),
    ] {
        let file = parse(&text);
        assert!((1..=200).contains(&file.diagnostics.len()));
        let text =
            crate::diagnostic::render(&file.diagnostics, Some(&file.source), crate::diagnostic::Look::PLAIN);
        assert!(text.len() < 200_000);
        assert!(crate::diagnostic::json(&file.diagnostics, Some(&file.source)).len() < 201);
    }
    assert!(start.elapsed() < std::time::Duration::from_mins(1), "{:?}", start.elapsed());
}

#[test]
fn only_regular_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("large.yaml");
    std::fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    for path in [dir.path(), &dir.path().join("none.yaml"), &large] {
        let file = SurgeryFile::read(path);
        assert_eq!(file.diagnostics[0].code, Code::FileUnreadable, "{}", path.display());
        assert!(file.diagnostics[0].message.contains(&path.display().to_string()));
    }
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_dangling_links_are_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link.yaml");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let pipe = dir.path().join("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [link.as_path(), &pipe, Path::new("/dev/zero")] {
        assert_eq!(SurgeryFile::read(path).diagnostics[0].code, Code::FileUnreadable, "{}", path.display());
    }
}

/// Lines that are almost a surgery file.
fn almost_yaml() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("op: scale"),
        Just("op: prune"),
        Just("pattern: \"a.*\""),
        Just("factor: 2"),
        Just("- "),
        Just("- op: add"),
        Just("version: 1"),
        Just("operations:"),
        Just("&a "),
        Just("*a"),
        Just("<<: *a"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("layer_ids: [1, -2]"),
        Just("é"),
        Just("\t"),
        Just("granularity: layer"),
        Just("\""),
        Just("'"),
        Just("|\n"),
        Just(": "),
        Just("~"),
        Just("#"),
        Just("---\n"),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_answered_with_operations_or_mistakes_in_their_places(text in almost_yaml(), lead in "version: 1\noperations:\n  - |") {
        let file = parse(&format!("{lead}{text}"));
        for found in &file.diagnostics {
            prop_assert_eq!(found.severity(), Severity::Error);
            prop_assert!(!found.labels.is_empty());
            for label in &found.labels {
                prop_assert!(file.source.text.get(label.span.clone()).is_some(), "{:?}", found);
            }
        }
        let places: Vec<usize> = file.diagnostics.iter().map(|found| found.labels[0].span.start).collect();
        prop_assert!(places.is_sorted());
        let text = crate::diagnostic::render(&file.diagnostics, Some(&file.source), crate::diagnostic::Look::PLAIN);
        prop_assert!(text.lines().all(|line| line == line.trim_end()));
    }
}

#[test]
fn a_list_of_exclusions_has_an_end() {
    let list = |n: usize| vec!["'*.bias'"; n].join(", ");
    assert_eq!(
        accepted(&format!("op: scale, pattern: a, factor: 2, exclude: [{}]", list(1000))).exclude.len(),
        1000
    );
    check_operation(
        &format!("op: scale, pattern: a, factor: 2, exclude: [{}]", list(1001)),
        &["bad_value: ["],
    );
}
