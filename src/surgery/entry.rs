//! One entry of `operations`: which operation it is, which fields it has, and which it lacks.

use std::collections::BTreeSet;
use std::path::Path;

use super::fields::{Field, Op, ids_of};
use super::keys::{Seen, is_named, key_name, left_merge, no_value, unknown};
use super::node::{Node, Value};
use super::report::Report;
use super::values::{self, Values};
use super::which::{near_field, which_op};
use super::{Fragment, Granularity, Kind, Method, Operation, Spanned, suggest, texts};
use crate::diagnostic::{Code, Diagnostic, did_you_mean, nearest, words};

/// What becomes of an entry of `operations`.
pub(super) enum Lowered {
    /// It can be planned, though perhaps only for the sake of its other mistakes.
    Operation(Box<Operation>),
    /// Too much of it is wrong.
    Fragment(Box<Fragment>),
}

/// Lowers one entry of `operations`; what is wrong with it goes into the report. It does not lack the fields that `stray`,
/// which has been reported.
pub(super) fn operation(
    index: usize,
    entry: &Node,
    dir: &Path,
    stray: &[Field],
    report: &mut Report<'_>,
) -> Option<Lowered> {
    let Value::Map(pairs) = &entry.value else {
        let message = format!("operation {} is {}, not a mapping", index + 1, entry.value.kind());
        let help = "an operation has `op`, `pattern` and fields of its own".to_owned();
        report.bad_value(&entry.visible().with(Value::Null), message, "", help);
        return None;
    };
    let (op, meant_op) = which_op(entry, pairs, report);
    let granularity = pairs
        .iter()
        .find(|(key, _)| is_named(key, Field::Granularity.name()))
        .and_then(|(_, value)| values::granularity_of(value));
    let mut reader = Reader {
        op: op.as_ref().map(|op| op.value),
        meant_op,
        granularity,
        values: Values::new(dir),
        meant: stray.iter().copied().collect(),
        clean: op.is_some() && stray.is_empty(),
        plannable: op.is_some(),
    };
    reader.fields(pairs, report);
    if let Some(op) = &op {
        reader.missing(op, report);
        if let (Op::Replace, Some(pattern), Some(source_key)) =
            (op.value, &reader.values.pattern, &reader.values.source_key)
            && !texts::check_captures(pattern, source_key, report)
        {
            reader.clean = false;
            reader.plannable = false;
        }
    }
    let sound = reader.clean && !reader.values.failed;
    match op.filter(|op| reader.plannable && reader.values.suffice(op.value, sound)) {
        Some(op) => {
            let line = report.line(op.used().start);
            assemble(index, line, &op, reader.values, sound)
                .map(|operation| Lowered::Operation(Box::new(operation)))
        }
        None => Some(Lowered::Fragment(Box::new(reader.values.into_fragment()))),
    }
}

/// One operation being read.
struct Reader<'d> {
    op: Option<Op>,
    /// The operation that an unknown one probably means.
    meant_op: Option<Op>,
    granularity: Option<Granularity>,
    values: Values<'d>,
    /// Fields that a misspelt or misplaced one stands for.
    meant: BTreeSet<Field>,
    /// Whether nothing is wrong with it.
    clean: bool,
    /// Whether planning it could not find a mistake that only follows from one already named.
    plannable: bool,
}

impl Reader<'_> {
    /// Reads every field there is.
    fn fields(&mut self, pairs: &[(Node, Node)], report: &mut Report<'_>) {
        let given: BTreeSet<Field> =
            pairs.iter().filter_map(|(key, _)| key_name(key).and_then(Field::named)).collect();
        let mut seen = Seen::default();
        for (key, value) in pairs {
            if left_merge(key, value, report) {
                self.clean = false;
                continue;
            }
            if seen.repeats(key, report) {
                self.clean = false;
                match key_name(key).and_then(Field::named) {
                    // Nobody knows which of the two is meant.
                    Some(field) => self.values.forget(field),
                    None => self.plannable = false,
                }
                continue;
            }
            match key_name(key).and_then(Field::named) {
                Some(Field::Op) => {}
                Some(field) if self.takes(field) => {
                    self.meant.insert(field);
                    if value.value == Value::Null {
                        self.clean = false;
                        Self::null(field, key, value, report);
                    } else {
                        self.values.read(field, value, report);
                    }
                }
                Some(field) => {
                    self.clean = false;
                    self.misplaced(field, &given, key, report);
                }
                None => {
                    self.clean = false;
                    self.unknown(key, value, &given, report);
                }
            }
        }
    }

    /// Whether the operation has such a field; an operation that is not known may have any.
    fn takes(&self, field: Field) -> bool {
        let Some(op) = self.op else { return true };
        let common = matches!(field, Field::Name | Field::Pattern | Field::Exclude);
        let unsure = op == Op::Prune && self.granularity.is_none() && field.is_ids();
        common || unsure || op.own(self.granularity).contains(&field)
    }

    fn null(field: Field, key: &Node, value: &Node, report: &mut Report<'_>) {
        if field.is_optional() {
            let message = format!("`{}` has no value", field.name());
            let place = if value.span.is_empty() { key } else { value };
            report.bad_value(place, message, "", "give it a value, or drop the field".to_owned());
        } else {
            report.push(no_value(key, value, field.name()).help(values::expected(field)));
        }
    }

    /// A field of another operation, or of another granularity.
    fn misplaced(&mut self, field: Field, given: &BTreeSet<Field>, key: &Node, report: &mut Report<'_>) {
        let Some(op) = self.op else { return };
        let own = op.own(self.granularity);
        let instead: Vec<Field> =
            own.iter().copied().filter(|own| field.kin().contains(own) && !given.contains(own)).collect();
        let (owner, label) = match self.granularity {
            Some(granularity) if op == Op::Prune && field.is_ids() => {
                (format!("granularity `{}`", values::granularity_name(granularity)), "of another granularity")
            }
            _ => (format!("`{}`", op.name()), "of another operation"),
        };
        let message = format!("{owner} has no field `{}`", field.name());
        // A field of another operation may mean that this is meant to be that operation.
        self.plannable &= !instead.is_empty();
        let help = if instead.is_empty() {
            let what = label.trim_start_matches("of ");
            format!("drop it, or choose {what}; {}", takes_help(op, self.granularity))
        } else {
            format!("{owner} takes {}", words::list_and(instead.iter().map(|field| field.name())))
        };
        self.meant.extend(instead);
        report
            .push(key.label_at_definition(Diagnostic::new(Code::UnexpectedField, message), label).help(help));
    }

    /// A field that no operation has. If it is clear what it should have been called, its value is judged as that.
    fn unknown(&mut self, key: &Node, value: &Node, given: &BTreeSet<Field>, report: &mut Report<'_>) {
        if report.is_full() {
            self.plannable = false;
            report.push(unknown(key, report.text));
            return;
        }
        let name = key_name(key);
        let op = self.op.or(self.meant_op);
        let own: Vec<&str> = match op {
            Some(op) => field_names(op, self.granularity).collect(),
            None => Field::ALL.map(Field::name).to_vec(),
        };
        let absent: Vec<&str> =
            own.iter().copied().filter(|own| !given.iter().any(|given| given.name() == *own)).collect();
        let fits = name.and_then(|name| {
            // What other tools call otherwise is another field in each operation.
            let synonym = || op.and_then(|_| suggest::field(name, &absent));
            nearest(name, absent.iter().copied()).or_else(synonym)
        });
        // One list for two fields.
        let both = matches!(value.value, Value::List(_) | Value::Map(_))
            && fits == Some(Field::SourceA.name())
            && absent.contains(&Field::SourceB.name());
        let near = fits.or_else(|| {
            let name = name?;
            nearest(name, own.iter().copied()).or_else(|| near_field(name, op))
        });
        let help = match (name, op) {
            (Some(name), _) if name.starts_with("x-") => {
                "keys that begin with `x-` are ignored at the top level only".to_owned()
            }
            _ if both => "write two fields, `source_a` and `source_b`, with one path each".to_owned(),
            (_, Some(op)) => did_you_mean(near, &takes_help(op, self.granularity)),
            (_, None) => did_you_mean(near, "no operation has such a field"),
        };
        report.push(unknown(key, report.text).help(help));
        self.meant.extend(near.and_then(Field::named));
        self.meant.extend(both.then_some(Field::SourceB));
        match fits.and_then(Field::named) {
            Some(field) if value.value != Value::Null && !both => self.values.read(field, value, report),
            // It may have been meant to keep the operation away from something.
            _ => self.plannable = false,
        }
    }

    /// Reports the required fields that are not there.
    fn missing(&mut self, op: &Spanned<Op>, report: &mut Report<'_>) {
        let mut required = vec![Field::Pattern];
        required.extend(op.value.own(self.granularity).into_iter().filter(|field| !field.is_optional()));
        for field in required.into_iter().filter(|field| !self.meant.contains(field)) {
            self.clean = false;
            let message = format!("`{}` has no `{}`", op.value.name(), field.name());
            let missing = op.label_at_definition(Diagnostic::new(Code::MissingField, message), "");
            let help = match self.meant.iter().find_map(|meant| granularity_of_ids(*meant)) {
                Some(word) if field == Field::Granularity => format!("add `granularity: {word}`"),
                _ => format!("add `{}:`; {}", field.name(), values::expected(field)),
            };
            report.push(missing.help(help));
        }
    }
}

/// The operation, if every value it needs is there. Numbers that could not be read have stand-ins: no mistake follows from
/// these.
fn assemble(
    index: usize,
    line: usize,
    op: &Spanned<Op>,
    values: Values<'_>,
    sound: bool,
) -> Option<Operation> {
    let pattern = values.pattern?;
    let kind = match op.value {
        Op::Scale => Kind::Scale { factor: values.factor.unwrap_or_else(|| op.with(0.5)) },
        Op::Add => Kind::Add { source: values.source?, alpha: values.alpha.unwrap_or_else(|| op.with(1.0)) },
        Op::Prune => Kind::Prune { granularity: values.granularity?, ids: values.ids? },
        Op::Replace => Kind::Replace { source: values.source?, source_key: values.source_key? },
        Op::Interpolate => Kind::Interpolate {
            source_a: values.source_a?,
            source_b: values.source_b?,
            ratio: values.ratio.unwrap_or_else(|| op.with(0.5)),
            method: values.method.unwrap_or_else(|| op.with(Method::Lerp)),
        },
    };
    let op = op.with(op.value.name());
    Some(Operation { index, name: values.name, sound, op, line, pattern, exclude: values.exclude, kind })
}

fn field_names(op: Op, granularity: Option<Granularity>) -> impl Iterator<Item = &'static str> {
    let common = [Field::Op, Field::Pattern];
    let optional = [Field::Exclude, Field::Name];
    // Until the granularity is known, the ids may be those of any.
    let ids = if op == Op::Prune && granularity.is_none() {
        vec![Field::LayerIds, Field::HeadIds, Field::ChannelIds]
    } else {
        Vec::new()
    };
    common.into_iter().chain(op.own(granularity)).chain(ids).chain(optional).map(Field::name)
}

fn takes_help(op: Op, granularity: Option<Granularity>) -> String {
    format!("`{}` takes {}", op.name(), words::list_and(field_names(op, granularity).skip(1)))
}

/// The granularity whose ids a field lists.
fn granularity_of_ids(field: Field) -> Option<&'static str> {
    let all = [Granularity::Layer, Granularity::AttentionHead, Granularity::MlpChannel];
    all.into_iter().find(|granularity| ids_of(*granularity) == field).map(values::granularity_name)
}
