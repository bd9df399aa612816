//! Valid operations and what they lower to.

use super::*;

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
