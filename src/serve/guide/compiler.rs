//! [`GuideCompiler`]: compiles JSON schemas to guides.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, SimpleVob, TokEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

use super::error::{GuideError, first_line};
use super::matcher::Guide;
use super::schema_limits::check_size;
use super::vocabulary::Vocabulary;
use crate::generate::Tokenizer;

/// Stack of the compiling thread in bytes. The library recurses into schemas; only touched pages take memory.
const STACK_BYTES: usize = 256 << 20;
/// White space between JSON tokens. Unbounded white space lets small models generate nothing else.
const WHITESPACE: &str = "[ \\n\\r\\t]{1,16}";

/// Compiles JSON schemas for one tokenizer.
pub(in crate::serve) struct GuideCompiler {
    factory: ParserFactory,
}

impl std::fmt::Debug for GuideCompiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuideCompiler").finish_non_exhaustive()
    }
}

impl GuideCompiler {
    /// A compiler for a model with `vocabulary` tokens, whose end-of-text tokens are `eos`.
    pub(in crate::serve) fn new(
        tokenizer: &Arc<Tokenizer>,
        eos: &[u32],
        vocabulary: usize,
    ) -> Result<Self, GuideError> {
        let (Some(&end), Ok(count)) = (eos.first(), u32::try_from(vocabulary)) else {
            return Err(GuideError::NoEndOfText);
        };
        let env: TokEnv = Arc::new(Vocabulary::new(tokenizer, eos, end, count));
        let slices = llguidance::earley::SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
            .map_err(|error| GuideError::Tokenizer(error.to_string()))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        // A tenth of the library's defaults: schemas come from untrusted clients.
        limits.max_lexer_states = 25_000;
        limits.max_grammar_size = 50_000;
        limits.initial_lexer_fuel = 1_000_000;
        limits.precompute_large_lexemes = false;
        Ok(Self { factory })
    }

    /// A guide at the beginning of an answer.
    pub(in crate::serve) fn compile(&self, schema: &Value) -> Result<Guide, GuideError> {
        self.matcher(schema).map(Guide::new)
    }

    fn matcher(&self, schema: &Value) -> Result<Matcher, GuideError> {
        check_size(schema)?;
        // The library recurses as deep as the size limits allow, which needs a larger stack than threads have.
        let builder = std::thread::Builder::new().name("schema".to_owned()).stack_size(STACK_BYTES);
        let compiled = std::thread::scope(|scope| {
            let thread = builder.spawn_scoped(scope, || self.compile_on_this_stack(schema));
            thread.ok().and_then(|thread| thread.join().ok())
        });
        compiled.unwrap_or(Err(GuideError::TooComplex))
    }

    fn compile_on_this_stack(&self, schema: &Value) -> Result<Matcher, GuideError> {
        let mut schema = schema.clone();
        if let Some(object) = schema.as_object_mut() {
            object.insert("x-guidance".to_owned(), serde_json::json!({"whitespace_pattern": WHITESPACE}));
        }
        let unsupported = |error: &str| GuideError::Schema(first_line(error));
        let parser = self.factory.create_parser(TopLevelGrammar::from_json_schema(schema));
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(unsupported(&error));
        }
        // The first mask is the most expensive; computing it here reports bad schemas before generation starts.
        let mask: Result<SimpleVob, _> = matcher.compute_mask();
        match mask {
            Ok(mask) if mask.num_set() > 0 => Ok(matcher),
            Ok(_) => Err(GuideError::Unsatisfiable),
            Err(error) => Err(unsupported(&error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
