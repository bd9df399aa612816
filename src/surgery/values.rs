//! What the value of each field may be. A field has the same type in every operation, so a value can be judged even
//! where the operation's name is wrong. Words are here, numbers and ids in [`numbers`](super::numbers), everything else in
//! [`texts`](super::texts).

use std::path::{Path, PathBuf};

use super::fields::{Field, Op};
use super::node::{Node, Value};
use super::numbers::{ids, number, ratio};
use super::report::Report;
use super::texts::{name, path, pattern, patterns, template, text};
use super::{Fragment, Granularity, Method, Pattern, Spanned, Template, suggest};
use crate::diagnostic::{did_you_mean, nearest, words};

const GRANULARITIES: [(&str, Granularity); 3] = [
    ("layer", Granularity::Layer),
    ("attention_head", Granularity::AttentionHead),
    ("mlp_channel", Granularity::MlpChannel),
];
const METHODS: [(&str, Method); 2] = [("lerp", Method::Lerp), ("slerp", Method::Slerp)];

/// The values of one operation that are as they should be.
pub(super) struct Values<'d> {
    dir: &'d Path,
    /// Whether a value was not.
    pub(super) failed: bool,
    /// Whether it is known which keys are excluded.
    excludes: bool,
    pub(super) name: Option<String>,
    pub(super) pattern: Option<Spanned<Pattern>>,
    pub(super) exclude: Vec<Spanned<Pattern>>,
    pub(super) factor: Option<Spanned<f64>>,
    pub(super) alpha: Option<Spanned<f64>>,
    pub(super) ratio: Option<Spanned<f64>>,
    pub(super) granularity: Option<Spanned<Granularity>>,
    pub(super) ids: Option<Spanned<Vec<Spanned<u64>>>>,
    pub(super) source: Option<Spanned<PathBuf>>,
    pub(super) source_a: Option<Spanned<PathBuf>>,
    pub(super) source_b: Option<Spanned<PathBuf>>,
    pub(super) source_key: Option<Spanned<Template>>,
    pub(super) method: Option<Spanned<Method>>,
}

impl<'d> Values<'d> {
    pub(super) fn new(dir: &'d Path) -> Self {
        Self {
            dir,
            failed: false,
            excludes: true,
            name: None,
            pattern: None,
            exclude: Vec::new(),
            factor: None,
            alpha: None,
            ratio: None,
            granularity: None,
            ids: None,
            source: None,
            source_a: None,
            source_b: None,
            source_key: None,
            method: None,
        }
    }

    /// Reads a field's value, which is not null; a mistake is recorded here and in the report.
    pub(super) fn read(&mut self, field: Field, node: &Node, report: &mut Report<'_>) {
        let good = match field {
            Field::Op => return,
            Field::Name => keep(&mut self.name, name(node, report)),
            Field::Pattern => keep(&mut self.pattern, pattern(field, node, report)),
            Field::Exclude => {
                let read = patterns(node, report);
                self.excludes &= read.is_some();
                self.exclude = read.unwrap_or_default();
                self.excludes
            }
            Field::Factor => keep(&mut self.factor, number(field, node, report)),
            Field::Alpha => keep(&mut self.alpha, number(field, node, report)),
            Field::Ratio => keep(&mut self.ratio, ratio(node, report)),
            Field::Granularity => keep(&mut self.granularity, word(field, &GRANULARITIES, node, report)),
            Field::Method => keep(&mut self.method, word(field, &METHODS, node, report)),
            Field::LayerIds | Field::HeadIds | Field::ChannelIds => {
                let (read, good) = ids(field, node, report);
                self.ids = read;
                good
            }
            Field::Source => keep(&mut self.source, path(field, node, self.dir, report)),
            Field::SourceA => keep(&mut self.source_a, path(field, node, self.dir, report)),
            Field::SourceB => keep(&mut self.source_b, path(field, node, self.dir, report)),
            Field::SourceKey => keep(&mut self.source_key, template(node, report)),
        };
        self.failed |= !good;
    }

    /// Drops the value of a field, for good.
    pub(super) fn forget(&mut self, field: Field) {
        self.failed = true;
        match field {
            Field::Op | Field::Name => {}
            Field::Pattern => self.pattern = None,
            Field::Exclude => self.excludes = false,
            Field::Factor => self.factor = None,
            Field::Alpha => self.alpha = None,
            Field::Ratio => self.ratio = None,
            Field::Granularity => self.granularity = None,
            Field::Method => self.method = None,
            Field::LayerIds | Field::HeadIds | Field::ChannelIds => self.ids = None,
            Field::Source => self.source = None,
            Field::SourceA => self.source_a = None,
            Field::SourceB => self.source_b = None,
            Field::SourceKey => self.source_key = None,
        }
    }

    /// Whether an operation can be planned with these values, be it only for the sake of its other mistakes.
    pub(super) fn suffice(&self, op: Op, sound: bool) -> bool {
        let own = match op {
            Op::Scale => true,
            Op::Add => self.source.is_some(),
            Op::Prune => self.granularity.is_some() && self.ids.is_some(),
            Op::Replace => self.source.is_some() && self.source_key.is_some(),
            Op::Interpolate => self.source_a.is_some() && self.source_b.is_some(),
        };
        own && self.pattern.is_some() && (sound || self.excludes)
    }

    /// What can be checked without knowing the operation.
    pub(super) fn into_fragment(self) -> Fragment {
        let sources = [self.source, self.source_a, self.source_b].into_iter().flatten().collect();
        Fragment { pattern: self.pattern, sources }
    }
}

fn keep<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    *slot = value;
    slot.is_some()
}

/// What a field's value must be, for a help.
pub(super) fn expected(field: Field) -> String {
    let name = field.name();
    match field {
        Field::Op => "it is the name of an operation".to_owned(),
        Field::Name => "it is a line of text".to_owned(),
        Field::Pattern | Field::Exclude => {
            "it is a pattern over tensor keys, such as \"model.layers.*.mlp.down_proj.weight\"".to_owned()
        }
        Field::Factor | Field::Alpha => "it is a number, such as `0.5`".to_owned(),
        Field::Ratio => "it is a number from 0 (all of `source_a`) to 1 (all of `source_b`)".to_owned(),
        Field::Granularity => format!("must be {}", words::list_or(GRANULARITIES.map(|word| word.0))),
        Field::Method => format!("must be {}", words::list_or(METHODS.map(|word| word.0))),
        Field::LayerIds | Field::HeadIds | Field::ChannelIds => {
            format!("it is a list of whole numbers, such as `{name}: [3, 7]`")
        }
        Field::Source | Field::SourceA | Field::SourceB => {
            "it is the path of a safetensors file, a model directory or an index file".to_owned()
        }
        Field::SourceKey => "it is the donor's key, with as many `*` as the pattern".to_owned(),
    }
}

pub(super) fn granularity_name(granularity: Granularity) -> &'static str {
    GRANULARITIES.iter().find(|word| word.1 == granularity).map_or("", |word| word.0)
}

/// The granularity a node names, without a word if it names none.
pub(super) fn granularity_of(node: &Node) -> Option<Granularity> {
    match &node.value {
        Value::Text(text) => GRANULARITIES.iter().find(|word| word.0 == text).map(|word| word.1),
        _ => None,
    }
}

fn word<T: Copy>(
    field: Field,
    words: &[(&str, T)],
    node: &Node,
    report: &mut Report<'_>,
) -> Option<Spanned<T>> {
    let written = text(field, node, report)?;
    if let Some(word) = words.iter().find(|word| word.0 == written) {
        return Some(node.with(word.1));
    }
    let all = || words.iter().map(|word| word.0);
    let near = nearest(written, all()).or_else(|| suggest::word(written, all()));
    let help = did_you_mean(near, &expected(field));
    report.bad_value(node, format!("unknown {} `{}`", field.name(), words::excerpt(written)), "", help);
    None
}
