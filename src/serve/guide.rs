//! [`Guides`]: what holds an answer to a JSON schema, by llguidance.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value};

use super::error::ApiError;
use crate::generate::Tokenizer;

/// Makes guides for one tokenizer.
pub(super) struct Guides {
    factory: ParserFactory,
}

impl std::fmt::Debug for Guides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guides").finish_non_exhaustive()
    }
}

/// The tokens as llguidance sees them.
struct Vocabulary {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer.encode(text, false).unwrap_or_default()
        })
    }

    /// No token is ever forced without the model, so it does not matter.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

impl Guides {
    /// For a tokenizer and a model of so many tokens, whose texts end with `eos`.
    pub(super) fn new(tokenizer: &Arc<Tokenizer>, eos: &[u32], vocabulary: usize) -> Result<Self, String> {
        let (Some(&end), Ok(count)) = (eos.first(), u32::try_from(vocabulary)) else {
            return Err("no format can be held to: the model has no token that ends a text".to_owned());
        };
        let words: Vec<Vec<u8>> = (0..count).map(|id| word(tokenizer, eos, id)).collect();
        let trie = TokTrie::from(&TokRxInfo::new(count, end), &words);
        let env: TokEnv = Arc::new(Vocabulary { trie, tokenizer: Arc::clone(tokenizer) });
        let slices = llguidance::earley::SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
            .map_err(|error| format!("no format can be held to with this tokenizer: {error}"))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        // A tenth of the library's own bounds on memory: a schema comes from a stranger.
        limits.max_lexer_states = 25_000;
        limits.max_grammar_size = 50_000;
        limits.initial_lexer_fuel = 1_000_000;
        limits.precompute_large_lexemes = false;
        Ok(Self { factory })
    }

    /// What holds one answer to a JSON schema.
    pub(super) fn json(&self, schema: &Value) -> Result<Matcher, ApiError> {
        check(schema)?;
        // The library follows a schema by recursion, on a stack that is larger than any that the bounds allow.
        let builder = std::thread::Builder::new().name("schema".to_owned()).stack_size(STACK);
        let compiled = std::thread::scope(|scope| {
            let thread = builder.spawn_scoped(scope, || self.compile(schema));
            thread.ok().and_then(|thread| thread.join().ok())
        });
        compiled.unwrap_or_else(|| Err(refused("it is too complex")))
    }

    fn compile(&self, schema: &Value) -> Result<Matcher, ApiError> {
        let mut schema = schema.clone();
        if let Some(object) = schema.as_object_mut() {
            // Small models are content to say nothing but spaces, for which JSON has room between any two tokens.
            object.insert("x-guidance".to_owned(), serde_json::json!({"whitespace_pattern": SPACE}));
        }
        let parser = self.factory.create_parser(TopLevelGrammar::from_json_schema(schema));
        let mut matcher = Matcher::new(parser);
        match matcher.get_error() {
            None => {}
            Some(error) => return Err(refused(&error)),
        }
        // The first mask is the dearest, and shows what the schema is worth before the engine meets it.
        let mask: Result<SimpleVob, _> = matcher.compute_mask();
        match mask {
            Ok(mask) if mask.num_set() > 0 => Ok(matcher),
            Ok(_) => Err(refused("nothing fits it")),
            Err(error) => Err(refused(&error.to_string())),
        }
    }
}

/// Bytes of the stack that schemas are compiled on; only what is touched takes memory.
const STACK: usize = 256 << 20;
/// White space between tokens of JSON.
const SPACE: &str = "[ \\n\\r\\t]{1,16}";
/// Values in a schema, of any kind.
const VALUES: usize = 10_000;
/// Entries of an object or a list that is no `enum`.
const ENTRIES: usize = 512;
/// How deep values may be nested.
const DEPTH: usize = 64;

/// Refuses a schema that would cost more than any serious one, before the library sees it.
fn check(schema: &Value) -> Result<(), ApiError> {
    let mut stack = vec![(schema, 1, "")];
    let mut values = 0;
    while let Some((value, depth, name)) = stack.pop() {
        values += 1;
        let entries = value.as_array().map_or(0, Vec::len).max(value.as_object().map_or(0, Map::len));
        if values > VALUES || depth > DEPTH || (entries > ENTRIES && name != "enum") {
            return Err(refused("it is too large"));
        }
        match value {
            Value::Array(list) => stack.extend(list.iter().map(|value| (value, depth + 1, ""))),
            Value::Object(object) => {
                stack.extend(object.iter().map(|(name, value)| (value, depth + 1, name.as_str())));
            }
            _ => {}
        }
    }
    Ok(())
}

fn refused(error: &str) -> ApiError {
    let line = error.lines().next().unwrap_or_default();
    ApiError::field("response_format", format!("the schema cannot be followed: {line}"))
}

/// The bytes of a token; those of special ones are marked, so that no text can have them.
fn word(tokenizer: &Tokenizer, eos: &[u32], id: u32) -> Vec<u8> {
    let bytes = tokenizer.bytes(id);
    if bytes.is_empty() || tokenizer.is_special(id) || eos.contains(&id) {
        let mut marked = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        if bytes.is_empty() {
            marked.extend(format!("<unknown {id}>").bytes());
        }
        marked.extend(bytes);
        return marked;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn guides() -> (Arc<Tokenizer>, Guides) {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/tiny-tales/base");
        let tokenizer = Arc::new(Tokenizer::open(Path::new(dir)).expect("the fixture opens"));
        let guides = Guides::new(&tokenizer, &[0], 512).expect("a vocabulary of bytes");
        (tokenizer, guides)
    }

    /// Whether a text is allowed token by token, and may end then.
    fn takes(schema: &Value, text: &str) -> bool {
        let (tokenizer, guides) = guides();
        let mut matcher = guides.json(schema).expect("a schema that can be followed");
        let tokens = tokenizer.encode(text, false).unwrap();
        tokens.iter().all(|token| {
            matcher.compute_mask_or_eos().is_ok_and(|mask| mask.is_allowed(*token))
                && matcher.consume_token(*token).is_ok()
        }) && matcher.is_accepting().unwrap_or(false)
    }

    #[test]
    fn an_answer_is_held_to_its_schema() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"], "additionalProperties": false});
        assert!(takes(&schema, r#"{"name": "日本 Anna", "age": 7}"#));
        assert!(!takes(&schema, r#"{"name": "Anna"}"#));
        assert!(!takes(&schema, r#"{"name": 7, "age": 7}"#));
        assert!(takes(&json!({"type": "object"}), r#"{"a": [1, null, {"b": true}]}"#));
        assert!(!takes(&json!({"type": "object"}), "[1]"));
    }

    #[test]
    fn white_space_ends() {
        let schema = json!({"type": "object"});
        assert!(takes(&schema, "{\n  \"a\":\t1 }"));
        assert!(!takes(&schema, &format!("{{{}}}", " ".repeat(17))));
    }

    #[test]
    fn special_tokens_are_no_text() {
        let (_, guides) = guides();
        let mut matcher = guides.json(&json!({"type": "string"})).unwrap();
        let quote = guides.factory.tok_env().tokenize("\"");
        matcher.consume_tokens(&quote).unwrap();
        let mask = matcher.compute_mask().unwrap();
        assert!((0..3).all(|special| !mask.is_allowed(special)));
    }

    #[track_caller]
    fn check_bounded(schema: &Value) {
        let (_, guides) = guides();
        let begin = Instant::now();
        if let Ok(mut matcher) = guides.json(schema) {
            for _ in 0..8 {
                let Ok(mask) = matcher.compute_mask_or_eos() else { break };
                let Some(token) = (3..512).find(|token| mask.is_allowed(*token)) else { break };
                if matcher.consume_token(token).is_err() {
                    break;
                }
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }

    #[test]
    fn hostile_schemas_end_soon() {
        check_bounded(&json!({"type": "string", "pattern": "^(a+)+(b|c{1,5000}){1,5000}$"}));
        check_bounded(&json!({"type": "string", "minLength": 1_000_000, "maxLength": 100_000_000}));
        check_bounded(&json!({"type": "array", "minItems": 1_000_000, "items": {"type": "integer"}}));
        check_bounded(&json!({"$ref": "#"}));
        check_bounded(
            &json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        );
        check_bounded(&json!({"$ref": "http://localhost/schema.json"}));
        let mut deep = json!({"type": "integer"});
        for _ in 0..100 {
            deep = json!({"anyOf": [deep, {"type": "array", "items": deep}], "not": {}});
            if deep.to_string().len() > 1 << 20 {
                break;
            }
        }
        check_bounded(&deep);
        let many: Vec<String> = (0..20_000).map(|number| format!("value-{number}")).collect();
        check_bounded(&json!({"enum": many}));
        check_bounded(&json!({"type": "object", "required": many}));
        check_bounded(&json!({"type": "object", "required": &many[..500]}));
        let chain: Map<String, Value> = (0..500)
            .map(|at| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)})))
            .chain([("d500".to_owned(), json!({"type": "integer"}))])
            .collect();
        check_bounded(&json!({"$ref": "#/$defs/d0", "$defs": chain}));
        let one = |at: usize, to: usize| json!({"properties": {(format!("p{at}")): {"const": to}}});
        let some = |at: usize| json!({"anyOf": (0..4).map(|to| one(at, to)).collect::<Vec<_>>()});
        check_bounded(&json!({"allOf": (0..6).map(some).collect::<Vec<_>>()}));
        check_bounded(&json!({"allOf": (0..30).map(some).collect::<Vec<_>>()}));
    }
}
