//! `mlxcel generate --compare`: the same prompt without and with surgery.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::{Failure, Outcome};
use super::load_session::{Model, Session};
use super::output;
use crate::generate::{Generation, Limits, Piece, Position, Request, Tokenizer, compare};
use crate::model;

/// What one of the two models generated.
struct Completion {
    text: String,
    tokens: Vec<u32>,
    finish: Option<&'static str>,
}

/// Generates twice with the same seed, and reports where and how much the two models differ.
pub(super) fn run(session: Session<'_>, request: Request, as_json: bool) -> Outcome {
    let (edited, base) = session.load_beside()?;
    let limits = Limits { vocabulary: Some(base.vocabulary()), ..Limits::default() };
    limits.check(&request.prompt)?;
    let prompt = request.prompt.clone();
    let tokenizer = request.text.as_ref().map(|(tokenizer, _)| tokenizer.clone());
    let without = complete(&*base, request.clone())?;
    let with = complete(&*edited.loaded.model, request)?;
    let positions = compare(&*base, &*edited.loaded.model, &prompt, &without.tokens)?;
    let comparison = Comparison { without, with, positions };
    let text = if as_json {
        format!("{}\n", comparison.json(&edited, tokenizer.is_some()))
    } else {
        comparison.text(tokenizer.as_deref())
    };
    output::stdout(&text)?;
    Ok(Exit::Success)
}

fn complete(model: &dyn model::Model, request: Request) -> Result<Completion, Failure> {
    let each = |_| std::ops::ControlFlow::Continue(());
    let mut text = String::new();
    let Some(mut generation) = Generation::start(model, request, each)? else {
        return Ok(Completion { text, tokens: Vec::new(), finish: None });
    };
    for piece in generation.by_ref() {
        let Piece { text: more, .. } = piece?;
        text.push_str(&more);
    }
    let sequence = generation.sequence();
    let finish = sequence.finish().map(crate::generate::FinishReason::name);
    Ok(Completion { text, tokens: sequence.answer().to_vec(), finish })
}

struct Comparison {
    without: Completion,
    with: Completion,
    /// Both models' predictions along the base completion.
    positions: Vec<Position>,
}

impl Comparison {
    /// The 0-based position of the first token that differs or that only one completion has.
    fn first_difference(&self) -> Option<usize> {
        let (a, b) = (&self.without.tokens, &self.with.tokens);
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        (same < a.len().max(b.len())).then_some(same)
    }

    fn mean_divergence(&self) -> Option<f64> {
        let sum: f64 = self.positions.iter().map(|position| position.divergence).sum();
        #[expect(clippy::cast_precision_loss, reason = "no answer has 2⁵² tokens")]
        let mean = sum / self.positions.len() as f64;
        (!self.positions.is_empty()).then_some(mean)
    }

    fn agreeing(&self) -> usize {
        self.positions.iter().filter(|position| position.agrees).count()
    }

    fn json(&self, edited: &Model, has_text: bool) -> Value {
        let answer = |answer: &Completion| {
            let text = has_text.then_some(&answer.text);
            json!({"text": text, "tokens": answer.tokens, "finish_reason": answer.finish})
        };
        let positions = self.positions.iter().map(|position| {
            let Position { token, divergence, agrees } = position;
            json!({"token": token, "kl": divergence, "top1_agrees": agrees})
        });
        json!({
            "base": answer(&self.without),
            "edited": answer(&self.with),
            "first_difference": self.first_difference(),
            "mean_kl": self.mean_divergence(),
            "top1_agreement": (!self.positions.is_empty()).then_some(self.agreeing()),
            "positions": positions.collect::<Vec<_>>(),
            "surgery": edited.surgery(),
        })
    }

    fn text(&self, tokenizer: Option<&Tokenizer>) -> String {
        let shown = |token: Option<&u32>| match (token, tokenizer) {
            (None, _) => "end".to_owned(),
            (Some(token), None) => token.to_string(),
            (Some(token), Some(tokenizer)) => {
                format!("{:?}", String::from_utf8_lossy(&tokenizer.bytes(*token)))
            }
        };
        let shown_text = |answer: &Completion| match tokenizer {
            Some(_) => answer.text.clone(),
            None => answer.tokens.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        };
        let mut text = format!(
            "without surgery:\n{}\n\nwith surgery:\n{}\n\n",
            shown_text(&self.without),
            shown_text(&self.with)
        );
        // Writing to a String cannot fail.
        let _ = match self.first_difference() {
            None => writeln!(text, "identical: {} tokens", self.without.tokens.len()),
            Some(at) => {
                let (a, b) = (shown(self.without.tokens.get(at)), shown(self.with.tokens.get(at)));
                writeln!(text, "first difference at token {}: {a} without, {b} with", at + 1)
            }
        };
        if let Some(mean) = self.mean_divergence() {
            let (agreeing, all) = (self.agreeing(), self.positions.len());
            let _ = writeln!(
                text,
                "mean KL along the base answer: {mean:.4} nats/token; top-1 agrees at {agreeing} of {all} positions\n"
            );
            let _ = writeln!(text, "token\tKL\ttop-1\ttext");
        }
        for (at, Position { token, divergence, agrees }) in self.positions.iter().enumerate() {
            let agrees = if *agrees { "same" } else { "other" };
            let _ = writeln!(text, "{}\t{divergence:.4}\t{agrees}\t{}", at + 1, shown(Some(token)));
        }
        text
    }
}
