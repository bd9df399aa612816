//! Hostile files and random files.

use proptest::prelude::*;

use super::*;

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
fn files_full_of_mistakes_are_answered_briefly() {
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
            prop_assert!(found.help.is_some(), "{:?}", found);
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
