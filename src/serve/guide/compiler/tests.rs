//! Which texts a compiled schema accepts, and that hostile schemas end.

use super::*;
use serde_json::{Map, json};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

fn compiler() -> (Arc<Tokenizer>, GuideCompiler) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/tiny-tales/base");
    let tokenizer = Arc::new(Tokenizer::open(Path::new(dir)).expect("the fixture opens"));
    let compiler = GuideCompiler::new(&tokenizer, &[0], 512).expect("a vocabulary of bytes");
    (tokenizer, compiler)
}

/// Whether a text is allowed token by token, and may end then.
fn accepts(schema: &Value, text: &str) -> bool {
    let (tokenizer, compiler) = compiler();
    let mut matcher = compiler.matcher(schema).expect("a supported schema");
    let tokens = tokenizer.encode(text, false).unwrap();
    tokens.iter().all(|token| {
        matcher.compute_mask_or_eos().is_ok_and(|mask| mask.is_allowed(*token))
            && matcher.consume_token(*token).is_ok()
    }) && matcher.is_accepting().unwrap_or(false)
}

#[test]
fn only_texts_of_the_schema_are_accepted() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    assert!(accepts(&schema, r#"{"name": "日本 Anna", "age": 7}"#));
    assert!(!accepts(&schema, r#"{"name": "Anna"}"#));
    assert!(!accepts(&schema, r#"{"name": 7, "age": 7}"#));
    assert!(accepts(&json!({"type": "object"}), r#"{"a": [1, null, {"b": true}]}"#));
    assert!(!accepts(&json!({"type": "object"}), "[1]"));
}

#[test]
fn white_space_is_bounded() {
    let schema = json!({"type": "object"});
    assert!(accepts(&schema, "{\n  \"a\":\t1 }"));
    assert!(!accepts(&schema, &format!("{{{}}}", " ".repeat(17))));
}

#[test]
fn special_tokens_never_match_text() {
    let (_, compiler) = compiler();
    let mut matcher = compiler.matcher(&json!({"type": "string"})).unwrap();
    let quote = compiler.factory.tok_env().tokenize("\"");
    matcher.consume_tokens(&quote).unwrap();
    let mask = matcher.compute_mask().unwrap();
    assert!((0..3).all(|special| !mask.is_allowed(special)));
}

/// Compiles a schema and follows it for a few tokens; whether it is accepted does not matter, only that this ends.
#[track_caller]
fn check_ends(schema: &Value) {
    /// Guards against hanging, far above what any schema takes.
    const GUARD: Duration = Duration::from_mins(5);
    let schema = schema.clone();
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let (_, compiler) = compiler();
        if let Ok(mut matcher) = compiler.matcher(&schema) {
            for _ in 0..8 {
                let Ok(mask) = matcher.compute_mask_or_eos() else { break };
                let Some(token) = (3..512).find(|token| mask.is_allowed(*token)) else { break };
                if matcher.consume_token(token).is_err() {
                    break;
                }
            }
        }
        // The test may have given up.
        let _ = done.send(());
    });
    ended.recv_timeout(GUARD).expect("the schema is compiled or rejected");
}

#[test]
fn hostile_schemas_are_compiled_or_rejected() {
    check_ends(&json!({"type": "string", "pattern": "^(a+)+(b|c{1,5000}){1,5000}$"}));
    check_ends(&json!({"type": "string", "minLength": 1_000_000, "maxLength": 100_000_000}));
    check_ends(&json!({"type": "array", "minItems": 1_000_000, "items": {"type": "integer"}}));
    check_ends(&json!({"$ref": "#"}));
    check_ends(
        &json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    );
    check_ends(&json!({"$ref": "http://localhost/schema.json"}));
    let mut deep = json!({"type": "integer"});
    for _ in 0..100 {
        deep = json!({"anyOf": [deep, {"type": "array", "items": deep}], "not": {}});
        if deep.to_string().len() > 1 << 20 {
            break;
        }
    }
    check_ends(&deep);
    let many: Vec<String> = (0..20_000).map(|number| format!("value-{number}")).collect();
    check_ends(&json!({"enum": many}));
    check_ends(&json!({"type": "object", "required": many}));
    check_ends(&json!({"type": "object", "required": &many[..500]}));
    let chain: Map<String, Value> = (0..500)
        .map(|at| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)})))
        .chain([("d500".to_owned(), json!({"type": "integer"}))])
        .collect();
    check_ends(&json!({"$ref": "#/$defs/d0", "$defs": chain}));
    let one = |at: usize, to: usize| json!({"properties": {(format!("p{at}")): {"const": to}}});
    let some = |at: usize| json!({"anyOf": (0..4).map(|to| one(at, to)).collect::<Vec<_>>()});
    check_ends(&json!({"allOf": (0..6).map(some).collect::<Vec<_>>()}));
    check_ends(&json!({"allOf": (0..30).map(some).collect::<Vec<_>>()}));
}
