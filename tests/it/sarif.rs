//! SARIF as the standard has it (OASIS SARIF 2.1.0): which properties an object may have, which it must, and of what type.
//! The schema itself is not kept here; what this program writes of it is written out below.

use std::fs;

use serde_json::Value;

use crate::fixture::Fixture;
use crate::program::mlxcel;

const BAD: &str = "version: 1\nx-é: &p \"модель.*\"\noperations:\n- op: scale\n  pattern: *p\n  factr: 0.5\n- op: prune\n  \
                   pattern: 'model.layers.*'\n  granularity: layer\n  layer_ids: [0, 0, 99]\n- op: scale\n  pattern: \
                   lm_head.weight\n  factor: 1\n";

/// A property: its name, whether it must be there, and what it is.
type Property = (&'static str, bool, Is);

#[derive(Clone, Copy)]
enum Is {
    /// Text that is not empty.
    Text,
    /// One of these.
    Word(&'static [&'static str]),
    /// A whole number from here up.
    From(i64),
    /// An object.
    Object(&'static [Property]),
    /// A list of objects, without duplicates if the standard says so.
    List(&'static [Property], bool),
    /// A URI reference.
    Uri,
}

const MESSAGE: &[Property] = &[("text", true, Is::Text)];
const REGION: &[Property] = &[
    ("startLine", true, Is::From(1)),
    ("startColumn", true, Is::From(1)),
    ("endLine", true, Is::From(1)),
    ("endColumn", true, Is::From(1)),
];
const PHYSICAL: &[Property] = &[
    ("artifactLocation", true, Is::Object(&[("uri", true, Is::Uri)])),
    ("region", false, Is::Object(REGION)),
];
const LOCATION: &[Property] = &[
    ("id", false, Is::From(-1)),
    ("physicalLocation", true, Is::Object(PHYSICAL)),
    ("message", false, Is::Object(MESSAGE)),
];
const LEVELS: Is = Is::Word(&["none", "note", "warning", "error"]);
const RESULT: &[Property] = &[
    ("ruleId", true, Is::Text),
    ("ruleIndex", true, Is::From(-1)),
    ("level", true, LEVELS),
    ("message", true, Is::Object(MESSAGE)),
    ("locations", false, Is::List(LOCATION, false)),
    ("relatedLocations", false, Is::List(LOCATION, true)),
];
const RULE: &[Property] = &[
    ("id", true, Is::Text),
    ("name", false, Is::Text),
    ("shortDescription", false, Is::Object(MESSAGE)),
    ("help", false, Is::Object(&[("text", true, Is::Text), ("markdown", false, Is::Text)])),
    ("defaultConfiguration", false, Is::Object(&[("level", false, LEVELS)])),
];
const DRIVER: &[Property] =
    &[("name", true, Is::Text), ("semanticVersion", false, Is::Text), ("rules", false, Is::List(RULE, true))];
const RUN: &[Property] = &[
    ("tool", true, Is::Object(&[("driver", true, Is::Object(DRIVER))])),
    ("columnKind", false, Is::Word(&["utf16CodeUnits", "unicodeCodePoints"])),
    ("results", false, Is::List(RESULT, false)),
];
const LOG: &[Property] = &[
    ("$schema", false, Is::Uri),
    ("version", true, Is::Word(&["2.1.0"])),
    ("runs", true, Is::List(RUN, false)),
];

fn valid(value: &Value, is: Is, place: &str) {
    let fits = match is {
        Is::Text => value.as_str().is_some_and(|text| !text.is_empty()),
        Is::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Is::From(least) => value.as_i64().is_some_and(|number| number >= least),
        Is::Uri => value.as_str().is_some_and(|uri| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
            !uri.is_empty() && uri.bytes().all(plain)
        }),
        Is::List(properties, distinct) => {
            let items = value.as_array().unwrap_or_else(|| panic!("{place}: {value}"));
            for (at, item) in items.iter().enumerate() {
                valid(item, Is::Object(properties), &format!("{place}[{at}]"));
                assert!(!(distinct && items[..at].contains(item)), "{place}[{at}] is there twice");
            }
            true
        }
        Is::Object(properties) => {
            let object = value.as_object().unwrap_or_else(|| panic!("{place}: {value}"));
            for (name, value) in object {
                let known = properties.iter().find(|(known, ..)| known == name);
                let (.., is) = known.unwrap_or_else(|| panic!("{place} has no property {name}"));
                valid(value, *is, &format!("{place}.{name}"));
            }
            for (name, ..) in properties.iter().filter(|(_, required, _)| *required) {
                assert!(object.contains_key(*name), "{place} lacks {name}");
            }
            true
        }
    };
    assert!(fits, "{place}: {value}");
}

#[test]
fn a_log_conforms_to_the_standard() {
    let stage = Fixture::new("llama-3.2-1b", BAD);
    fs::write(stage.dir().join("a b,ü.yaml"), "version: 2\n").expect("a file can be written");
    fs::create_dir(stage.dir().join("none")).expect("a directory can be made");
    let mut found = 0;
    for (model, files) in [
        ("model", "surgery.yaml"),
        ("none", "surgery.yaml"),
        ("model", "a b,ü.yaml"),
        ("model", "nowhere.yaml"),
    ] {
        let mut command = crate::program::command(stage.dir());
        command.args(["surgery", "check", files, "--model", model, "--format", "sarif"]);
        let log = crate::program::ended(command.output().expect("the program can be run")).json();
        valid(&log, Is::Object(LOG), "log");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("a list");
        let ids: Vec<&Value> = rules.iter().map(|rule| &rule["id"]).collect();
        assert!((1..ids.len()).all(|at| !ids[..at].contains(&ids[at])), "{ids:?}");
        let encoded = files.replace(' ', "%20").replace(',', "%2C").replace('ü', "%C3%BC");
        for result in run["results"].as_array().expect("a list") {
            let index = usize::try_from(result["ruleIndex"].as_u64().expect("a number")).expect("a place");
            assert_eq!(rules[index]["id"], result["ruleId"]);
            let level = &rules[index]["defaultConfiguration"]["level"];
            assert_eq!(level, &result["level"], "a level is that of its rule");
            for location in result["locations"].as_array().into_iter().flatten() {
                assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], encoded.as_str());
                let region = &location["physicalLocation"]["region"];
                let at = |name: &str| region[name].as_u64();
                assert!((at("startLine"), at("startColumn")) <= (at("endLine"), at("endColumn")), "{region}");
            }
            found += 1;
        }
    }
    assert!(found > 6, "only {found} results");
    let empty = mlxcel(stage.dir(), "surgery check model/config.json --format sarif").json();
    valid(&empty, Is::Object(LOG), "log");
}

#[test]
fn names_and_messages_are_escaped_in_annotations() {
    let stage = Fixture::new("llama-3.2-1b", BAD);
    let name = "50%,a:b.yaml";
    let yaml = "version: 1\noperations:\n- op: scale\n  pattern: 'a%0A::error::x,y: z'\n  factor: 2\n- op: \"scale\\n::error::b\"\n  \
                pattern: '*'\n";
    fs::write(stage.dir().join(name), yaml).expect("a file can be written");
    let run = mlxcel(stage.dir(), &format!("surgery check {name} --model model --format github"));
    let lines: Vec<&str> = run.stdout.lines().collect();
    let (last, annotations) = lines.split_last().expect("lines");
    assert!(last.starts_with("1 file: 2 errors"), "{lines:#?}");
    for line in annotations {
        let (command, text) =
            line.strip_prefix("::error ").and_then(|rest| rest.split_once("::")).expect("a command");
        assert!(command.starts_with("file=50%25%2Ca%3Ab.yaml,line="), "{line}");
        assert!(command.split(',').all(|property| property.split('=').count() == 2), "{line}");
        assert!(!text.is_empty());
    }
    assert!(annotations[0].contains("`a%250A::error::x,y: z` matches no tensor%0Ahelp: "), "{lines:#?}");
    assert!(!annotations.iter().any(|line| line.contains("%0A::")), "{lines:#?}");
}
