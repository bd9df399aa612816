//! One entry of `operations`: which operation it is, which fields it has, and which it lacks.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::language::{Field, Granularity, OpName};
use super::super::operation::{Fragment, Operation};
use super::super::spanned::Spanned;
use super::super::suggest::{Siblings, misplaced_help};
use super::super::tree::{Node, Value};
use super::assemble;
use super::collector::Collector;
use super::expected::expected;
use super::mapping_keys::{Seen, is_named, key_name, left_merge, no_value, unknown_field};
use super::op_name::op_name;
use super::patterns::check_captures;
use super::values::Values;
use crate::diagnostic::{Code, Diagnostic};

/// An entry of `operations`, lowered.
pub(super) enum Lowered {
    /// Can be planned, perhaps only to find its other mistakes.
    Operation(Box<Operation>),
    /// Has too many mistakes.
    Fragment(Box<Fragment>),
}

/// Lowers one entry of `operations`. The fields in `stray` were reported elsewhere and are not missing here.
pub(super) fn operation(
    index: usize,
    entry: &Node,
    dir: &Path,
    stray: &[Field],
    collector: &mut Collector<'_>,
) -> Option<Lowered> {
    let Value::Map(pairs) = &entry.value else {
        let message = format!("operation {} is {}, not a mapping", index + 1, entry.value.kind());
        let help = "write a mapping with `op`, `pattern` and the operation's own fields".to_owned();
        collector.bad_value(&entry.visible().with(Value::Null), message, "", help);
        return None;
    };
    let (op, meant_op) = op_name(entry, pairs, collector);
    let mut reader = Reader {
        op: op.as_ref().map(|op| op.value),
        meant_op,
        granularity: granularity(pairs),
        values: Values::new(dir),
        meant: stray.iter().copied().collect(),
        sound: op.is_some() && stray.is_empty(),
        plannable: op.is_some(),
    };
    reader.fields(pairs, collector);
    if let Some(op) = &op {
        reader.missing(op, collector);
        if let (Some(pattern), Some(donor_key)) = (&reader.values.pattern, &reader.values.donor_key)
            && !check_captures(pattern, donor_key, collector)
        {
            reader.sound = false;
            reader.plannable = false;
        }
    }
    let Reader { mut values, sound, plannable, .. } = reader;
    let sound = sound && !values.failed;
    let op = op.filter(|op| plannable && values.suffice(op.value, sound));
    let Some(op) = op else { return Some(Lowered::Fragment(Box::new(values.into_fragment()))) };
    let operation = Operation {
        index,
        line: collector.line(op.used().start),
        kind: assemble::kind(&op, &mut values)?,
        op,
        name: values.name,
        sound,
        pattern: values.pattern?,
        exclude: values.exclude,
    };
    Some(Lowered::Operation(Box::new(operation)))
}

/// The granularity that an entry names, if it is a valid one.
fn granularity(pairs: &[(Node, Node)]) -> Option<Granularity> {
    let (_, value) = pairs.iter().find(|(key, _)| is_named(key, Field::Granularity.name()))?;
    match &value.value {
        Value::Text(name) => Granularity::named(name),
        _ => None,
    }
}

/// One operation being read.
struct Reader<'d> {
    op: Option<OpName>,
    /// The operation that an unknown name probably means.
    meant_op: Option<OpName>,
    granularity: Option<Granularity>,
    values: Values<'d>,
    /// The fields that are present, or that a misspelled or misplaced one means.
    meant: BTreeSet<Field>,
    /// Whether it has no mistakes so far, those in [`Values::failed`] excepted.
    sound: bool,
    /// Whether planning it finds no consequences of known mistakes.
    plannable: bool,
}

impl Reader<'_> {
    /// Reads every field that is there.
    fn fields(&mut self, pairs: &[(Node, Node)], collector: &mut Collector<'_>) {
        let known = |key: &Node| key_name(key).and_then(Field::named);
        let given: BTreeSet<Field> = pairs.iter().filter_map(|(key, _)| known(key)).collect();
        let mut seen = Seen::default();
        for (key, value) in pairs {
            if left_merge(key, value, collector) {
                self.sound = false;
                continue;
            }
            if seen.repeats(key, collector) {
                self.sound = false;
                match known(key) {
                    // Either value may be meant.
                    Some(field) => self.values.forget(field),
                    None => self.plannable = false,
                }
                continue;
            }
            match known(key) {
                Some(Field::Op) => {}
                Some(field) if self.takes(field) => {
                    self.meant.insert(field);
                    if value.value == Value::Null {
                        self.sound = false;
                        null(field, key, value, collector);
                    } else {
                        self.values.read(field, value, collector);
                    }
                }
                Some(field) => {
                    self.sound = false;
                    self.misplaced(field, &given, key, collector);
                }
                None => {
                    self.sound = false;
                    self.unknown(key, value, &given, collector);
                }
            }
        }
    }

    /// Whether the operation has a field; an unknown operation may have any.
    fn takes(&self, field: Field) -> bool {
        let Some(op) = self.op else { return true };
        field.is_common()
            || op.own_fields(self.granularity).any(|own| own == field)
            // The ids may be those of any granularity until one is known.
            || (self.granularity.is_none() && op.ids_fields().any(|ids| ids == field))
    }

    /// Reports a field of another operation or granularity.
    fn misplaced(
        &mut self,
        field: Field,
        given: &BTreeSet<Field>,
        key: &Node,
        collector: &mut Collector<'_>,
    ) {
        let Some(op) = self.op else { return };
        let kin = field.spec().kin;
        let instead: Vec<Field> =
            op.own_fields(self.granularity).filter(|own| kin.contains(own) && !given.contains(own)).collect();
        let granularity = self.granularity.filter(|_| op.ids_fields().any(|ids| ids == field));
        let (owner, label) = match granularity {
            Some(granularity) => (format!("granularity `{granularity}`"), "belongs to another granularity"),
            None => (format!("`{op}`"), "of another operation"),
        };
        // Without a field to write instead, another operation may be meant.
        self.plannable &= !instead.is_empty();
        let message = format!("{owner} has no field `{}`", field.name());
        let help = misplaced_help(&owner, &instead, granularity.is_some(), op, self.granularity);
        self.meant.extend(instead);
        collector
            .push(key.label_at_definition(Diagnostic::new(Code::UnexpectedField, message), label).help(help));
    }

    /// Reports a field that no operation has. If it is clear which one it means, its value is read as that.
    fn unknown(&mut self, key: &Node, value: &Node, given: &BTreeSet<Field>, collector: &mut Collector<'_>) {
        let unknown = unknown_field(key, collector.text);
        if collector.is_full() {
            self.plannable = false;
            collector.push(unknown);
            return;
        }
        let siblings = Siblings { op: self.op.or(self.meant_op), granularity: self.granularity, given };
        let is_collection = matches!(value.value, Value::List(_) | Value::Map(_));
        let meant = siblings.meant_by(key_name(key), is_collection);
        collector.push(unknown.help(meant.help));
        self.meant.extend(meant.stands_for);
        match meant.reads_as {
            Some(field) if value.value != Value::Null => self.values.read(field, value, collector),
            // It may be meant to exclude something.
            _ => self.plannable = false,
        }
    }

    /// Reports the required fields that are missing.
    fn missing(&mut self, op: &Spanned<OpName>, collector: &mut Collector<'_>) {
        let required = op.value.own_fields(self.granularity).filter(|field| !field.spec().optional);
        let missing = |field: &Field| !self.meant.contains(field);
        for field in [Field::Pattern].into_iter().chain(required).filter(missing) {
            self.sound = false;
            let message = format!("`{}` has no `{}`", op.value, field.name());
            let ids_of = self.meant.iter().find_map(|meant| meant.granularity());
            let help = match ids_of.filter(|_| field == Field::Granularity) {
                Some(granularity) => format!("add `granularity: {granularity}`"),
                None => format!("add `{}:`, which {}", field.name(), expected(field)),
            };
            let missing = Diagnostic::new(Code::MissingField, message);
            collector.push(op.label_at_definition(missing, "").help(help));
        }
    }
}

/// Reports a field without a value.
fn null(field: Field, key: &Node, value: &Node, collector: &mut Collector<'_>) {
    if field.spec().optional {
        let message = format!("`{}` has no value", field.name());
        let place = if value.span.is_empty() { key } else { value };
        collector.bad_value(place, message, "", "give it a value, or remove the field".to_owned());
    } else {
        collector.push(no_value(key, value, field.name()).help(expected(field)));
    }
}
