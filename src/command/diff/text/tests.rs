use super::*;
use crate::checkpoint::Key;

#[test]
fn two_dtypes_are_shown() {
    let one = Comparison { dtypes: Some(["F32".into(), "F16".into()]), ..differs("x", 0.0, 0.0) };
    assert!(details(&[&one]).ends_with("(F32 in the first, F16 in the second)"), "{}", details(&[&one]));
}

#[test]
fn a_tie_is_shown_even_where_nothing_can_be_compared() {
    let tie = Some(crate::execute::Tie { side: Which::Second, to: Key::from("e") });
    let dtypes = Some(["BF16".into(), "U32".into()]);
    let one = Comparison { dtypes, tie, verdict: Verdict::Incomparable, ..equal("x") };
    assert_eq!(details(&[&one]), "BF16 [4] in the first, U32 [4] in the second (tied to `e` in the second)");
}

#[test]
fn percentages_have_no_exponents() {
    for (ratio, text) in [
        (0.0, "0"),
        (1e-9, "<0.0001"),
        (0.000_012, "0.0012"),
        (0.5, "50"),
        (3_000.0, "300000"),
        (1e30, ">1000000"),
        (f64::INFINITY, ">1000000"),
    ] {
        assert_eq!(percent(ratio), text);
    }
}

fn differs(key: &str, max: f64, relative: f64) -> Comparison {
    let figures = Figures {
        elements: 4,
        different: 2,
        max: Some(max),
        relative: Some(relative),
        cosine: Some(0.5),
        not_finite: None,
    };
    Comparison { verdict: Verdict::Differs(figures), ..equal(key) }
}

fn equal(key: &str) -> Comparison {
    Comparison {
        key: Key::from(key),
        shape: vec![4],
        dtype: "BF16".into(),
        bytes: 8,
        shapes: None,
        dtypes: None,
        tie: None,
        verdict: Verdict::Equal,
    }
}

#[test]
fn layers_are_folded_and_figures_span_them() {
    let head = Comparison { verdict: Verdict::OnlySecond, ..equal("lm_head.weight") };
    let found = [head, differs("layers.0.w", 0.25, 0.01), differs("layers.1.w", 0.5, 0.025), equal("z")];
    let text = of(&found, Look::PLAIN, false);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("lm_head.weight") && lines[0].ends_with("only in the second"), "{text}");
    assert!(lines[1].ends_with("2 tensors, max 0.5, change 1 to 2.5 %, cosine 0.500000"), "{text}");
    assert_eq!(lines.last(), Some(&"3 of 4 tensors differ (1 exists on one side only), 1 is equal"));
    assert_eq!(of(&found, Look::PLAIN, true).lines().count(), 8);
}

#[test]
fn tensors_without_change_or_cosine_are_not_folded_with_others() {
    let only = |key: &str, relative, cosine| {
        let figures =
            Figures { elements: 4, different: 2, max: Some(0.5), relative, cosine, not_finite: None };
        Comparison { verdict: Verdict::Differs(figures), ..equal(key) }
    };
    let found = [
        differs("layers.0.w", 0.25, 0.01),
        only("layers.1.w", None, None),
        only("layers.2.w", Some(1.0), None),
        differs("layers.3.w", 0.25, 0.02),
    ];
    let text = of(&found, Look::PLAIN, false);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[0].ends_with("2 tensors, max 0.25, change 1 to 2 %, cosine 0.500000"), "{text}");
    assert!(lines[1].starts_with("layers.1.w") && lines[1].ends_with("max 0.5, from zero"), "{text}");
    assert!(lines[2].starts_with("layers.2.w") && lines[2].ends_with("change 100 %, to zero"), "{text}");
    assert!(text.contains("the smallest cosine"), "{text}");
}

#[test]
fn numbers_have_three_digits() {
    for (value, text) in
        [(0.0, "0"), (5.0, "5"), (0.012_345, "0.0123"), (1234.5, "1234"), (1.5e-7, "1.50e-7")]
    {
        assert_eq!(number(value), text);
    }
}

#[test]
fn elements_that_are_not_finite_are_counted_by_side() {
    let says =
        |nan, infinite, only| not_finite(&NotFinite { nan, infinite, only }).collect::<Vec<_>>().join(", ");
    assert_eq!(says([0, 0], [0, 0], [0, 0]), "");
    assert_eq!(says([2, 0], [0, 0], [2, 0]), "2 NaN in the first only");
    assert_eq!(says([0, 0], [1, 4], [0, 3]), "3 infinite in the second only, 1 infinite in both");
    assert_eq!(says([1, 0], [0, 1], [0, 0]), "1 NaN or infinite in both");
}

#[test]
fn tensors_with_nan_are_not_folded_with_tensors_that_have_no_figures() {
    let only = |key: &str, not_finite| {
        let figures = Figures { elements: 4, different: 2, not_finite, ..Figures::default() };
        Comparison { verdict: Verdict::Differs(figures), ..equal(key) }
    };
    let nan = |n| Some(NotFinite { nan: [0, n], infinite: [0, 0], only: [0, n] });
    let found = [only("l.0.w", nan(1)), only("l.1.w", nan(2)), only("l.2.w", None)];
    let text = of(&found, Look::PLAIN, false);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[0].ends_with("  2 tensors, 4 of 8 elements, 3 NaN in the second only"), "{text}");
    assert!(lines[1].starts_with("l.2.w") && lines[1].ends_with("  2 of 4 elements"), "{text}");
    assert!(
        text.contains("NaN or infinite elements have no max") && !text.contains("the largest max"),
        "{text}"
    );
}
