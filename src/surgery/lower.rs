//! From the tree to [`Operation`]s: the document, its operations, and which fields each may have. What a field's value
//! may be is [`values`](super::values)'s concern.
//!
//! Every mistake is recorded and lowering goes on, so that one run names them all; what follows from a mistake already
//! named (a field that is missing because its name is misspelt) is not named again.

use std::collections::BTreeSet;
use std::path::Path;

use super::fields::{Field, Op};
use super::node::{Node, Value};
use super::report::Report;
use super::values::{self, Values};
use super::{Kind, Operation, Spanned, suggest};
use crate::diagnostic::{Code, Diagnostic};

/// The fields of the document.
const TOP: [&str; 2] = ["version", "operations"];

/// Lowers a document: the operations without a mistake, and everything wrong with the file.
pub(super) fn lower(root: &Node, text: &str, dir: &Path) -> (Vec<Operation>, Vec<Diagnostic>) {
    let mut report = Report::new(text);
    let operations = document(root, dir, &mut report);
    (operations, report.finish())
}

fn document(root: &Node, dir: &Path, report: &mut Report<'_>) -> Vec<Operation> {
    let pairs = match &root.value {
        Value::Map(pairs) => pairs,
        Value::Null => {
            let empty = Diagnostic::new(Code::MissingField, "the file has no `version`");
            let empty = empty.label(0..0, "");
            report.push(empty.help("begin with `version: 1` and `operations: []`"));
            return Vec::new();
        }
        other => {
            let message = format!("a surgery file is a mapping, not {}", other.kind());
            let help = match other {
                Value::List(_) => "put `version: 1` and `operations:` above the list",
                _ => "begin with `version: 1` and `operations:`",
            };
            report.bad_value(&root.visible().with(Value::Null), message, "", help.to_owned());
            return Vec::new();
        }
    };
    if let Some(refusal) = unsupported_version(pairs, report.text) {
        report.push(refusal);
        return Vec::new();
    }
    let meant = top_fields(pairs, report);
    for name in TOP {
        if !meant.contains(name) {
            let mut missing = Diagnostic::new(Code::MissingField, format!("the file has no `{name}`"));
            if let Some((key, _)) = pairs.first() {
                missing = key.visible().mark(missing, format!("no `{name}` in this mapping"));
            }
            report.push(missing.help(top_help(name)));
        }
    }
    let Some((key, list)) = pairs.iter().find(|(key, _)| is_named(key, "operations")) else {
        return Vec::new();
    };
    operations(key, list, dir, report)
}

/// A `version` that is there but is not the integer 1. Null is for [`top_fields`] to report.
fn unsupported_version(pairs: &[(Node, Node)], text: &str) -> Option<Diagnostic> {
    let (_, version) = pairs.iter().find(|(key, _)| is_named(key, "version"))?;
    if matches!(version.value, Value::Int(1) | Value::Null) {
        return None;
    }
    let written =
        text.get(version.span.clone()).filter(|written| written.len() < 40 && !written.contains('\n'));
    let message = match (&version.value, written) {
        (Value::List(_) | Value::Map(_), _) | (_, None | Some("")) => {
            format!("`version` is {}, not the integer 1", version.value.kind())
        }
        (_, Some(written)) => format!("version {written} is not supported"),
    };
    let help = match &version.value {
        Value::Text(_) => "write `version: 1`, a number without quotes",
        _ => "this program reads `version: 1`",
    };
    Some(version.visible().mark(Diagnostic::new(Code::UnsupportedVersion, message), "").help(help))
}

/// Reports repeated, unknown and null top-level fields; gives those that are there or were meant.
fn top_fields<'n>(pairs: &'n [(Node, Node)], report: &mut Report<'_>) -> BTreeSet<&'n str> {
    let mut meant = BTreeSet::new();
    let mut seen = Vec::new();
    for (key, value) in pairs {
        let name = key_name(key);
        if repeated(key, &mut seen, report) || name.is_some_and(|name| name.starts_with("x-")) {
            continue;
        }
        match name.and_then(|name| TOP.into_iter().find(|top| *top == name)) {
            Some(top) => {
                meant.insert(top);
                if value.value == Value::Null {
                    report.push(no_value(key, value, top).help(top_help(top)));
                }
            }
            None => {
                let absent = TOP.into_iter().filter(|top| !pairs.iter().any(|(key, _)| is_named(key, top)));
                let near = name.and_then(|name| suggest::nearest(name, absent));
                meant.extend(near);
                let help = if name.and_then(Field::named).is_some() {
                    "it belongs to an operation: put it into the list under `operations`".to_owned()
                } else {
                    let help = "a file has `version` and `operations`; keys that begin with `x-` are ignored";
                    suggest::did_you_mean(near, help)
                };
                report.push(unknown(key, report.text).help(help));
            }
        }
    }
    meant
}

fn top_help(name: &str) -> &'static str {
    match name {
        "version" => "write `version: 1`",
        _ => "write `operations:` and a list, or `operations: []` for no change",
    }
}

fn operations(key: &Node, list: &Node, dir: &Path, report: &mut Report<'_>) -> Vec<Operation> {
    match &list.value {
        Value::List(entries) => {
            let lower = |(index, entry)| operation(index, entry, dir, report);
            entries.iter().enumerate().filter_map(lower).collect()
        }
        Value::Null => Vec::new(),
        other => {
            let message = format!("`operations` is {}, not a list", other.kind());
            let help = match other {
                Value::Map(_) => "put `- ` in front of each operation",
                _ => "write a list of operations, or `[]` for no change",
            };
            let place = if list.span.is_empty() { key } else { list };
            report.bad_value(place, message, "", help.to_owned());
            Vec::new()
        }
    }
}

fn operation(index: usize, entry: &Node, dir: &Path, report: &mut Report<'_>) -> Option<Operation> {
    let Value::Map(pairs) = &entry.value else {
        let message = format!("operation {} is {}, not a mapping", index + 1, entry.value.kind());
        let help = "an operation has `op`, `pattern` and fields of its own".to_owned();
        report.bad_value(&entry.visible().with(Value::Null), message, "", help);
        return None;
    };
    let (op, op_meant) = which_op(entry, pairs, report);
    let granularity = pairs
        .iter()
        .find(|(key, _)| is_named(key, Field::Granularity.name()))
        .and_then(|(_, value)| values::granularity_of(value));
    let mut reader = Reader {
        op: op.as_ref().map(|op| op.value),
        granularity,
        values: Values::new(dir),
        meant: BTreeSet::new(),
        clean: op.is_some(),
    };
    reader.fields(pairs, op_meant, report);
    let op = op?;
    reader.missing(&op, report);
    if !reader.clean || reader.values.failed {
        return None;
    }
    let line = report.text.get(..op.span.start).map_or(1, |before| before.matches('\n').count() + 1);
    assemble(index, line, &op, reader.values, report)
}

/// The operation an entry names; and whether a field stands for `op`, so that its absence needs no word.
fn which_op(entry: &Node, pairs: &[(Node, Node)], report: &mut Report<'_>) -> (Option<Spanned<Op>>, bool) {
    let Some((key, value)) = pairs.iter().find(|(key, _)| is_named(key, "op")) else {
        let misspelt = |(key, _): &(Node, Node)| {
            key_name(key)
                .is_some_and(|name| Field::named(name).is_none() && near_field(name, None) == Some("op"))
        };
        if pairs.iter().any(misspelt) {
            return (None, true);
        }
        let missing = Diagnostic::new(Code::MissingField, "an operation has no `op`");
        let missing = entry.visible().mark(missing, "no `op` in this mapping");
        report.push(missing.help(format!("add `op:` with one of {}", op_names())));
        return (None, false);
    };
    let op = match &value.value {
        Value::Text(name) => {
            let op = Op::named(name);
            if op.is_none() {
                let near = suggest::nearest(name, Op::ALL.map(Op::name));
                let help = suggest::did_you_mean(near, &format!("the operations are {}", op_names()));
                let unknown = Diagnostic::new(Code::UnknownOperation, format!("unknown operation `{name}`"));
                report.push(value.mark(unknown, "").help(help));
            }
            op
        }
        Value::Null => {
            report.push(no_value(key, value, "op").help(format!("it is one of {}", op_names())));
            None
        }
        other => {
            let message = format!("`op` is {}, not the name of an operation", other.kind());
            let help = format!("the operations are {}", op_names());
            report.bad_value(&value.visible().with(Value::Null), message, "", help);
            None
        }
    };
    (op.map(|op| value.with(op)), false)
}

fn op_names() -> String {
    suggest::list(Op::ALL.map(Op::name))
}

/// One operation being read.
struct Reader<'d> {
    op: Option<Op>,
    granularity: Option<super::Granularity>,
    values: Values<'d>,
    /// Fields that a misspelt or misplaced one stands for.
    meant: BTreeSet<Field>,
    clean: bool,
}

impl Reader<'_> {
    /// Reads every field there is.
    fn fields(&mut self, pairs: &[(Node, Node)], op_meant: bool, report: &mut Report<'_>) {
        let given: Vec<Field> =
            pairs.iter().filter_map(|(key, _)| key_name(key).and_then(Field::named)).collect();
        let mut seen = Vec::new();
        for (key, value) in pairs {
            if repeated(key, &mut seen, report) {
                self.clean = false;
                continue;
            }
            match key_name(key).and_then(Field::named) {
                Some(Field::Op) => {}
                Some(field) if self.takes(field) => {
                    self.meant.insert(field);
                    if value.value == Value::Null {
                        self.clean = false;
                        self.null(field, key, value, report);
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
                    self.unknown(key, &given, op_meant, report);
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

    fn null(&self, field: Field, key: &Node, value: &Node, report: &mut Report<'_>) {
        if field.is_optional() {
            let message = format!("`{}` has no value", field.name());
            let place = if value.span.is_empty() { key } else { value };
            report.bad_value(place, message, "", "give it a value, or drop the field".to_owned());
        } else {
            report.push(no_value(key, value, field.name()).help(values::expected(field)));
        }
    }

    /// A field of another operation, or of another granularity.
    fn misplaced(&mut self, field: Field, given: &[Field], key: &Node, report: &mut Report<'_>) {
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
        let help = if instead.is_empty() {
            format!("drop it, or choose another operation; {}", takes_help(op, self.granularity))
        } else {
            format!("{owner} takes {}", suggest::list(instead.iter().map(|field| field.name())))
        };
        self.meant.extend(instead);
        report.push(key.mark(Diagnostic::new(Code::UnexpectedField, message), label).help(help));
    }

    fn unknown(&mut self, key: &Node, given: &[Field], op_meant: bool, report: &mut Report<'_>) {
        let name = key_name(key);
        let own: Vec<&str> = match self.op {
            Some(op) => field_names(op, self.granularity).collect(),
            None if op_meant => Field::ALL.map(Field::name).to_vec(),
            None => Field::ALL.iter().skip(1).map(|field| field.name()).collect(),
        };
        let absent = own.iter().copied().filter(|own| !given.iter().any(|given| given.name() == *own));
        let near = name.and_then(|name| {
            suggest::nearest(name, absent)
                .or_else(|| suggest::nearest(name, own.iter().copied()))
                .or_else(|| near_field(name, self.op))
        });
        self.meant.extend(near.and_then(Field::named));
        let help = match (name, self.op) {
            (Some(name), _) if name.starts_with("x-") => {
                "keys that begin with `x-` are ignored at the top level only".to_owned()
            }
            (_, Some(op)) => suggest::did_you_mean(near, &takes_help(op, self.granularity)),
            (_, None) => suggest::did_you_mean(near, "no operation has such a field"),
        };
        report.push(unknown(key, report.text).help(help));
    }

    /// Reports the required fields that are not there.
    fn missing(&mut self, op: &Spanned<Op>, report: &mut Report<'_>) {
        let mut required = vec![Field::Pattern];
        required.extend(op.value.own(self.granularity).into_iter().filter(|field| !field.is_optional()));
        for field in required.into_iter().filter(|field| !self.meant.contains(field)) {
            self.clean = false;
            let message = format!("`{}` has no `{}`", op.value.name(), field.name());
            let missing = op.mark(Diagnostic::new(Code::MissingField, message), "");
            report.push(missing.help(format!("add `{}:`; {}", field.name(), values::expected(field))));
        }
    }
}

/// The operation, if every value it needs is there.
fn assemble(
    index: usize,
    line: usize,
    op: &Spanned<Op>,
    values: Values<'_>,
    report: &mut Report<'_>,
) -> Option<Operation> {
    let pattern = values.pattern?;
    let kind = match op.value {
        Op::Scale => Kind::Scale { factor: values.factor? },
        Op::Add => Kind::Add { source: values.source?, alpha: values.alpha.unwrap_or_else(|| op.with(1.0)) },
        Op::Prune => Kind::Prune { granularity: values.granularity?, ids: values.ids? },
        Op::Replace => {
            let source_key = values.source_key?;
            values::check_captures(&pattern, &source_key, report)?;
            Kind::Replace { source: values.source?, source_key }
        }
        Op::Interpolate => Kind::Interpolate {
            source_a: values.source_a?,
            source_b: values.source_b?,
            ratio: values.ratio?,
            method: values.method?,
        },
    };
    let op = op.with(op.value.name());
    Some(Operation { index, name: values.name, op, line, pattern, exclude: values.exclude, kind })
}

fn field_names(op: Op, granularity: Option<super::Granularity>) -> impl Iterator<Item = &'static str> {
    let common = [Field::Op, Field::Pattern];
    let optional = [Field::Exclude, Field::Name];
    common.into_iter().chain(op.own(granularity)).chain(optional).map(Field::name)
}

fn takes_help(op: Op, granularity: Option<super::Granularity>) -> String {
    format!("`{}` takes {}", op.name(), suggest::list(field_names(op, granularity).skip(1)))
}

/// The nearest field of any operation but this one.
fn near_field(name: &str, but: Option<Op>) -> Option<&'static str> {
    let of_this = |field: &Field| but.is_some_and(|op| op.own(None).contains(field));
    suggest::nearest(name, Field::ALL.into_iter().filter(|field| !of_this(field)).map(Field::name))
}

fn key_name(key: &Node) -> Option<&str> {
    match &key.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

fn is_named(key: &Node, name: &str) -> bool {
    key_name(key) == Some(name)
}

/// A field that stands in its mapping already.
fn repeated<'n>(key: &'n Node, seen: &mut Vec<&'n Node>, report: &mut Report<'_>) -> bool {
    let first = seen.iter().find(|other| other.value == key.value);
    let Some(first) = first else {
        seen.push(key);
        return false;
    };
    let name = key_name(key).map_or_else(|| "the same key".to_owned(), |name| format!("`{name}`"));
    let twice = Diagnostic::new(Code::Syntax, format!("duplicate mapping key {name} is not allowed here"));
    let twice = key.visible().mark(twice, "again").label(first.visible().span, "first here");
    report.push(twice.help("keep one of the two"));
    true
}

fn no_value(key: &Node, value: &Node, name: &str) -> Diagnostic {
    let missing = Diagnostic::new(Code::MissingField, format!("`{name}` has no value"));
    if value.span.is_empty() { key.mark(missing, "") } else { value.mark(missing, "") }
}

fn unknown(key: &Node, text: &str) -> Diagnostic {
    let written = key_name(key).or_else(|| text.get(key.span.clone()));
    let name = written.filter(|name| name.len() < 80 && !name.contains('\n') && !name.is_empty());
    let message = match name {
        Some(name) => format!("unknown field `{name}`"),
        None => format!("unknown field: {} cannot name one", key.value.kind()),
    };
    key.visible().mark(Diagnostic::new(Code::UnknownField, message), "")
}
