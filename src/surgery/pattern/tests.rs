use proptest::prelude::*;

use super::template::Captures;
use super::*;

#[track_caller]
fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let parsed = Pattern::parse(pattern).unwrap();
    let matcher = Matcher::new(&parsed);
    for (keys, expected) in [(matching, true), (others, false)] {
        for key in keys {
            assert_eq!(matcher.matches(key), expected, "{pattern} on {key}");
        }
    }
}

#[track_caller]
fn check_refused(pattern: &str, marked: &str, message: &str) {
    let error = Pattern::parse(pattern).unwrap_err();
    assert_eq!((&pattern[error.span.clone()], error.message.as_str()), (marked, message));
    assert!(error.help.is_some());
}

#[track_caller]
fn check_captures(pattern: &str, key: &str, captures: Option<&[&str]>) {
    let found = Pattern::parse(pattern).unwrap().captures(key);
    assert_eq!(found.as_ref().map(|found| found.0.as_slice()), captures);
}

#[test]
fn a_pattern_covers_the_whole_key_and_its_case() {
    check(
        "model.norm.weight",
        &["model.norm.weight"],
        &["model.norm.weigh", "xmodel.norm.weight", "Model.norm.weight"],
    );
}

#[test]
fn a_star_is_any_text_dots_and_none_included() {
    check("a.*.z", &["a.b.z", "a.b.c.z", "a..z"], &["a.z", "ab.z"]);
    check("*", &["", "a", "a.b/c"], &[]);
    check("a**b", &["ab", "a.x.b"], &["a"]);
    check("**/x", &["/x", "a/x", "a.b/x"], &["x"]);
    check("*.", &["a.", ".."], &["a"]);
}

#[test]
fn a_question_mark_is_one_character_however_many_bytes() {
    check("a?b", &["axb", "a.b", "aüb"], &["ab", "axxb"]);
}

#[test]
fn a_class_is_one_character_of_a_set_or_not_of_it() {
    check("[0-3a]", &["0", "3", "a"], &["4", "b", "00"]);
    check("[!a-c]", &["d", ".", "é"], &["a", "c", ""]);
    check("[^a-c]", &["d"], &["b"]);
    check("[]!^-]", &["]", "!", "^", "-"], &["a"]);
    check("[!^]", &["a", "!"], &["^"]);
    check("[\\^!]", &["^", "!"], &["\\", "a"]);
    check("[a\\]b]", &["a", "]", "b"], &["\\"]);
    check("[-a]", &["-", "a"], &["b"]);
    check("[a-]", &["-", "a"], &["b"]);
    check("[+--]", &["+", ",", "-"], &["."]);
    check("[Z-a]", &["Z", "[", "]", "^", "a"], &["b", "Y"]);
    check("[é-ü]", &["é", "ö"], &["e"]);
    check("[[]", &["["], &["]"]);
}

#[test]
fn braces_are_alternatives_and_may_be_nested() {
    check("{q,k}_proj", &["q_proj", "k_proj"], &["v_proj", "qk_proj"]);
    check("a{b,{c,d}e}f", &["abf", "acef", "adef"], &["acf", "aef"]);
    check("{a*,b}c", &["axc", "bc"], &["bxc"]);
    check("a,b", &["a,b"], &["a"]);
}

#[test]
fn a_range_of_numbers_is_its_numbers() {
    check("l.{0..11}.w", &["l.0.w", "l.9.w", "l.11.w"], &["l.12.w", "l.00.w", "l..w"]);
    check("{7..7}", &["7"], &["6"]);
    check("{0..2,9}", &["0", "2", "9"], &["3"]);
    check("{0..3,{5..6}}", &["0", "3", "5", "6"], &["4", "5..6"]);
    check("{a{0..1}b,c}", &["a0b", "a1b", "c"], &["a2b", "ab"]);
    check("{[..],a}", &[".", "a"], &[".."]);
    check(r"{a\.\.b,c}", &["a..b", "c"], &[]);
}

#[test]
fn a_backslash_makes_the_next_character_literal() {
    check(r"\*\?\[\{\}\\\,", &[r"*?[{}\,"], &["a"]);
    check(r"{a\,b,c}", &["a,b", "c"], &["a"]);
}

#[test]
fn mistakes_are_refused_at_their_place() {
    check_refused("", "", "the pattern is empty");
    check_refused("a.\n", "\n", "the pattern has a line break");
    check_refused("a.\tb", "\t", "the pattern has a control character");
    check_refused("a.[0-3.b", "[", "unclosed `[`");
    check_refused("a.[]", "[", "unclosed `[`");
    check_refused("a.[9-0]", "9-0", "the range from `9` to `0` is empty");
    check_refused("[[:alpha:]]", "[:", "patterns have no named character classes");
    check_refused("a.{b,c", "{", "unclosed `{`");
    check_refused("a}b", "}", "unmatched `}`");
    check_refused("a{b,}", ",}", "an alternative is empty");
    check_refused("a{,b}", "{,", "an alternative is empty");
    check_refused("{}", "{}", "an alternative is empty");
    check_refused("a\\", "\\", "a `\\` at the end escapes nothing");
    check_refused("{3..1}", "3..1", "the range from 3 to 1 is empty");
    check_refused("{01..3}", "01..3", "`01` has leading zeros");
    check_refused("{0..4096}", "0..4096", "the range has more than 4096 values");
    check_refused("{a..c}", "a..c", "`a..c` is not a range of numbers");
    check_refused("{{0..1}..3}", "{0..1}..3", "`{0..1}..3` is not a range of numbers");
    check_refused("{0..99999999999999999999}", "0..99999999999999999999", "a number is too large");
    check_refused(&"{".repeat(9), "{", "braces are nested too deeply");
    assert!(Pattern::parse("{0..4095}").is_ok());
    let long = "a".repeat(4097);
    check_refused(&long, "a", "the pattern is longer than 4096 bytes");
}

#[test]
fn each_star_takes_the_shortest_text_from_the_left() {
    check_captures("a.*.b.*.c", "a.1.b.2.b.3.c", Some(&["1", "2.b.3"]));
    check_captures("**x", "abx", Some(&["", "ab"]));
    check_captures("*.*", "a.b.c", Some(&["a", "b.c"]));
    check_captures("*", "", Some(&[""]));
    check_captures("l.?.[ab].{x,y}.*", "l.1.a.y.w", Some(&["w"]));
    check_captures("a.*", "b.c", None);
    check_captures("ü*é", "üxñé", Some(&["xñ"]));
}

#[test]
fn of_alternatives_the_first_that_fits_is_taken() {
    check_captures("{a,ab}*", "abc", Some(&["bc"]));
    check_captures("{a,ab}c*", "abcd", Some(&["d"]));
    check_captures("l.{1..12}*", "l.12.w", Some(&["2.w"]));
}

#[test]
fn a_star_within_braces_has_a_place_and_no_capture() {
    let pattern = Pattern::parse("a.{b,c*}.*").unwrap();
    assert_eq!(pattern.braced_star(), Some(6..7));
    assert_eq!(pattern.captures("a.b.c"), None);
}

#[test]
fn a_template_is_filled_from_left_to_right() {
    let fill = |template: &str, captures: &[&str]| Template::new(template).fill(&Captures(captures.to_vec()));
    assert_eq!(fill("x.*.y.*", &["1", "2"]), "x.1.y.2");
    assert_eq!(fill("**", &["a", "b"]), "ab");
    assert_eq!(fill(r"a\*[0]?", &["*"]), r"a\*[0]?");
    assert_eq!(fill("x", &[]), "x");
}

#[test]
fn hostile_patterns_are_matched() {
    let key = "a".repeat(1500);
    for pattern in [
        "*a".repeat(40) + "b",
        "{a,a?,??}".repeat(60) + "b",
        "*".repeat(200) + "b",
        "{a*,*a}".repeat(20) + "b",
        "{0..4095}".to_owned() + "*b",
        "*?".repeat(200) + "b?",
        "*[a-z]".repeat(200) + "b?",
        "*{a,?}".repeat(60) + "b?",
        "*a*?[a]".repeat(100) + "b?",
    ] {
        let pattern = Pattern::parse(&pattern).unwrap();
        assert!(!pattern.matches(&key));
        assert!(pattern.captures(&key).is_none());
    }
}

#[test]
fn a_hundred_stars_are_matched_on_long_keys() {
    let keys: Vec<String> = (0..2000).map(|n| format!("model.{}{n}.weight", "a.".repeat(1500))).collect();
    for pattern in ["*.a".repeat(100) + "*b*t", "*?".repeat(100) + "*x", "*[.a]".repeat(100) + "*x?ght"] {
        let matcher = Matcher::new(&Pattern::parse(&pattern).unwrap());
        assert!(keys.iter().all(|key| !matcher.matches(key)));
    }
    let all = Matcher::new(&Pattern::parse(&("*a".repeat(100) + "*t")).unwrap());
    assert!(keys.iter().all(|key| all.matches(key)));
}

#[test]
fn a_matcher_tells_what_every_match_begins_with() {
    let head = |pattern: &str| Matcher::new(&Pattern::parse(pattern).unwrap()).head().to_owned();
    assert_eq!(head("model.norm.weight"), "model.norm.weight");
    assert_eq!(head("model.layers.*.mlp.{up,gate}_proj.weight"), "model.layers.");
    assert_eq!(head(r"a\*.b?"), "a*.b");
    assert_eq!(head("*"), "");
}

#[test]
fn numbers_are_whole_and_plain() {
    check("{8..12}", &["8", "9", "10", "12"], &["7", "13", "08", "1", "012", ""]);
    check("{0..3}{0..3}", &["00", "30"], &["0", "4", "04", "000"]);
    check("a{0..10}0", &["a00", "a100", "a10"], &["a0", "a110"]);
    check(
        "{18446744073709551610..18446744073709551615}",
        &["18446744073709551615"],
        &["18446744073709551616"],
    );
}

/// Patterns over a small alphabet, so that they match something; most are well-formed.
fn patterns() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[a-c.]{1,2}",
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        1 => "\\[[!^]?[a-c.!^\\]-][a-c.^!-]?\\]",
        1 => "\\\\[*?a\\[{}\\]!,-]",
        1 => "\\{[0-2]\\.\\.[2-4]\\}",
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner, 1..3).prop_map(|parts| format!("{{{}}}", parts.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn globset_and_our_matcher_agree(pattern in patterns(), keys in prop::collection::vec("[a-c0-4.*?!^,\\[\\]{}-]{0,8}", 8)) {
        if let Ok(pattern) = Pattern::parse(&pattern) {
            let glob = as_globset::compile(&pattern.parts()).unwrap().compile_matcher();
            for key in keys {
                prop_assert_eq!(pattern.matches(&key), glob.is_match(&key), "{:?} on {:?}", pattern.as_str(), key);
            }
        }
    }

    #[test]
    fn captures_put_back_give_the_key(parts in prop::collection::vec("[a-c.]{0,3}", 1..5), fill in prop::collection::vec("[a-c.]{0,3}", 5)) {
        let text = parts.join("*");
        let key = Template::new(&text).fill(&Captures(fill.iter().map(String::as_str).collect()));
        if let Ok(pattern) = Pattern::parse(&text) {
            prop_assert!(pattern.matches(&key));
            let captures = pattern.captures(&key).unwrap();
            prop_assert_eq!(captures.0.len(), pattern.wildcards());
            prop_assert_eq!(Template::new(&text).fill(&captures), key);
        }
    }

    #[test]
    fn captures_and_matches_agree(pattern in patterns(), key in "[a-cé0-4.]{0,8}") {
        if let Ok(pattern) = Pattern::parse(&pattern) {
            let matcher = Matcher::new(&pattern);
            let matches = matcher.matches(&key);
            prop_assert!(!matches || key.starts_with(matcher.head()));
            if pattern.braced_star().is_none() {
                prop_assert_eq!(matches, matcher.captures(&key).is_some());
            }
        }
    }

    #[test]
    fn ranges_of_numbers_are_their_alternatives(
        from in 0..120_u64, more in 0..30_u64, key in "[ab.]{0,2}[0-9]{0,4}[ab.]{0,2}", ends in "[*ab?]{0,3}",
    ) {
        let numbers: Vec<String> = (from..=from + more).map(|number| number.to_string()).collect();
        let range = Pattern::parse(&format!("*{{{from}..{}}}{ends}", from + more)).unwrap();
        let list = Pattern::parse(&format!("*{{{}}}{ends}", numbers.join(","))).unwrap();
        prop_assert_eq!(range.matches(&key), list.matches(&key));
        prop_assert_eq!(range.captures(&key), list.captures(&key));
    }

    #[test]
    fn any_text_is_a_pattern_or_refused_within_itself(text in "\\PC{0,30}") {
        if let Err(error) = Pattern::parse(&text) {
            prop_assert!(text.get(error.span).is_some());
        }
    }
}
