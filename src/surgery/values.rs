//! What the value of each field may be. A field has the same type in every operation, so a value can be judged even
//! where the operation's name is wrong. Numbers, ids and words are here, everything else is in [`texts`](super::texts).

use std::path::{Path, PathBuf};

use super::fields::{Field, Op};
use super::keys::shown;
use super::node::{Node, Value};
use super::report::Report;
use super::texts::{name, path, pattern, patterns, template, text};
use super::{Fragment, Granularity, Method, Pattern, Spanned, Template, suggest};
use crate::diagnostic::{Code, Diagnostic};

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
        Field::Granularity => format!("it is one of {}", suggest::list(GRANULARITIES.map(|word| word.0))),
        Field::Method => format!("it is one of {}", suggest::list(METHODS.map(|word| word.0))),
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

fn number(field: Field, node: &Node, report: &mut Report<'_>) -> Option<Spanned<f64>> {
    let value = match &node.value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a whole number beyond 2^53 is rounded, as in any decimal"
        )]
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        other => {
            let message = format!("`{}` is {}, not a number", field.name(), other.kind());
            let help = match other {
                Value::Text(text) if text.trim().parse::<f64>().is_ok_and(f64::is_finite) => {
                    format!("write it without quotes and underscores: `{}`", shown(text.trim()))
                }
                Value::List(items) if items.len() == 1 => "write the number without brackets".to_owned(),
                Value::List(_) => {
                    "one number holds for all that the pattern matches: for a gradient over layers write \
                                   one operation for each range of them, such as `{0..11}` and `{12..23}`"
                        .to_owned()
                }
                _ => expected(field),
            };
            report.bad_value(&node.visible().with(Value::Null), message, "", help);
            return None;
        }
    };
    if !value.is_finite() {
        let message = format!("`{}` is not a finite number", field.name());
        let refusal = node.blame(Diagnostic::new(Code::NotFinite, message), "");
        report.push(refusal.help("use a number that is neither infinite nor NaN"));
        return None;
    }
    Some(node.with(value))
}

fn ratio(node: &Node, report: &mut Report<'_>) -> Option<Spanned<f64>> {
    let ratio = number(Field::Ratio, node, report)?;
    if !(0.0..=1.0).contains(&ratio.value) {
        let written = report.text.get(node.span.clone()).unwrap_or_default();
        let message = format!("`ratio` is {}, not between 0 and 1", shown(written));
        let refusal = node.blame(Diagnostic::new(Code::RatioOutOfRange, message), "");
        report.push(refusal.help("0.3 takes 70 % of `source_a` and 30 % of `source_b`"));
        return None;
    }
    Some(ratio)
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
    let near = suggest::nearest(written, words.iter().map(|word| word.0));
    let help = suggest::did_you_mean(near, &expected(field));
    report.bad_value(node, format!("unknown {} `{}`", field.name(), shown(written)), "", help);
    None
}

/// The ids that are numbers, if there are any, and whether all are.
fn ids(field: Field, node: &Node, report: &mut Report<'_>) -> (Option<Spanned<Vec<Spanned<u64>>>>, bool) {
    let Value::List(items) = &node.value else {
        let message = format!("`{}` is {}, not a list", field.name(), node.value.kind());
        let written = report.text.get(node.span.clone()).unwrap_or_default();
        let help = match node.value {
            Value::Int(_) => format!("write `{}: [{}]`", field.name(), shown(written)),
            _ => expected(field),
        };
        report.bad_value(&node.visible().with(Value::Null), message, "", help);
        return (None, false);
    };
    if items.is_empty() {
        let empty = Diagnostic::new(Code::EmptyIds, format!("`{}` is empty", field.name()));
        report.push(node.blame(empty, "").help("list what is to be zeroed, or drop the operation"));
        return (None, false);
    }
    let read: Vec<_> = items.iter().filter_map(|item| id(field, item, report)).collect();
    let good = read.len() == items.len();
    ((!read.is_empty()).then(|| node.visible().with(read)), good)
}

fn id(field: Field, node: &Node, report: &mut Report<'_>) -> Option<Spanned<u64>> {
    if let Value::Int(value) = node.value
        && let Ok(id) = u64::try_from(value)
    {
        return Some(node.with(id));
    }
    let written = report.text.get(node.span.clone()).unwrap_or_default();
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    let mut help = "ids are whole numbers, counted from 0".to_owned();
    let what = match &node.value {
        Value::Int(value) if *value < 0 => "a negative number".to_owned(),
        Value::Float(value) if *value < 0.0 => "a negative number".to_owned(),
        // The parser has `010` for a float, since YAML 1.1 read it as 8.
        Value::Float(_) if digits && written.len() > 1 && written.starts_with('0') => {
            let plain = written.trim_start_matches('0');
            help = format!("write `{}`", if plain.is_empty() { "0" } else { plain });
            "a number with leading zeros".to_owned()
        }
        Value::Int(_) => "a number that is too large".to_owned(),
        Value::Float(_) if digits => "a number that is too large".to_owned(),
        Value::Text(text) if text.contains(' ') && text.split(' ').all(|id| id.parse::<u64>().is_ok()) => {
            help = format!("put commas between them: `[{}]`", shown(&text.replace(' ', ", ")));
            "text, not a whole number".to_owned()
        }
        Value::Float(_) => "a number that is not whole".to_owned(),
        other => format!("{}, not a whole number", other.kind()),
    };
    let message = format!("`{}` has {what}", field.name());
    report.bad_value(&node.visible().with(Value::Null), message, "", help);
    None
}
