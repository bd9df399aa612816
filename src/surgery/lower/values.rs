//! [`Values`]: the values of one operation's fields, by kind of value. A field has the same kind in every operation, so
//! values are checked even where the operation's name is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::language::{Field, Granularity, Method, OpName, ValueKind};
use super::super::operation::Fragment;
use super::super::pattern::{Pattern, Template};
use super::super::spanned::Spanned;
use super::super::tree::Node;
use super::collector::Collector;
use super::numbers::{ids, number, ratio};
use super::patterns::{pattern, patterns};
use super::strings::{choice, donor, donor_key, text};

/// The valid values of one operation.
pub(super) struct Values<'d> {
    /// The directory that donors are resolved against.
    dir: &'d Path,
    /// Whether a value was invalid or is ambiguous.
    pub(super) failed: bool,
    /// Whether it is unknown which keys are excluded.
    exclusions_unknown: bool,
    pub(super) name: Option<String>,
    pub(super) pattern: Option<Spanned<Pattern>>,
    pub(super) exclude: Vec<Spanned<Pattern>>,
    pub(super) numbers: BTreeMap<Field, Spanned<f64>>,
    pub(super) ids: BTreeMap<Field, Spanned<Vec<Spanned<u64>>>>,
    pub(super) donors: BTreeMap<Field, Spanned<PathBuf>>,
    pub(super) granularity: Option<Spanned<Granularity>>,
    pub(super) method: Option<Spanned<Method>>,
    pub(super) donor_key: Option<Spanned<Template>>,
}

impl<'d> Values<'d> {
    pub(super) fn new(dir: &'d Path) -> Self {
        Self {
            dir,
            failed: false,
            exclusions_unknown: false,
            name: None,
            pattern: None,
            exclude: Vec::new(),
            numbers: BTreeMap::new(),
            ids: BTreeMap::new(),
            donors: BTreeMap::new(),
            granularity: None,
            method: None,
            donor_key: None,
        }
    }

    /// Reads a field's value, which is not null; reports a mistake in it.
    pub(super) fn read(&mut self, field: Field, node: &Node, collector: &mut Collector<'_>) {
        let valid = match field.spec().value {
            ValueKind::OpName => return,
            ValueKind::Line => keep(&mut self.name, text(field, node, collector).map(str::to_owned)),
            ValueKind::Pattern => keep(&mut self.pattern, pattern(field, node, collector)),
            ValueKind::Patterns => {
                let read = patterns(field, node, collector);
                self.exclusions_unknown |= read.is_none();
                self.exclude = read.unwrap_or_default();
                !self.exclusions_unknown
            }
            ValueKind::Number => keep_in(&mut self.numbers, field, number(field, node, collector)),
            ValueKind::Ratio => keep_in(&mut self.numbers, field, ratio(field, node, collector)),
            ValueKind::Granularity => {
                let choices = (&Granularity::ALL[..], Granularity::name as fn(_) -> _);
                keep(&mut self.granularity, choice(field, choices, node, collector))
            }
            ValueKind::Method => {
                let choices = (&Method::ALL[..], Method::name as fn(_) -> _);
                keep(&mut self.method, choice(field, choices, node, collector))
            }
            ValueKind::Ids => {
                let (read, all_valid) = ids(field, node, collector);
                keep_in(&mut self.ids, field, read) && all_valid
            }
            ValueKind::Donor => keep_in(&mut self.donors, field, donor(field, node, self.dir, collector)),
            ValueKind::DonorKey => keep(&mut self.donor_key, donor_key(field, node, collector)),
        };
        self.failed |= !valid;
    }

    /// Discards the value of a field that is given twice.
    pub(super) fn forget(&mut self, field: Field) {
        self.failed = true;
        match field.spec().value {
            ValueKind::OpName | ValueKind::Line => {}
            ValueKind::Pattern => self.pattern = None,
            ValueKind::Patterns => self.exclusions_unknown = true,
            ValueKind::Number | ValueKind::Ratio => drop(self.numbers.remove(&field)),
            ValueKind::Granularity => self.granularity = None,
            ValueKind::Method => self.method = None,
            ValueKind::Ids => drop(self.ids.remove(&field)),
            ValueKind::Donor => drop(self.donors.remove(&field)),
            ValueKind::DonorKey => self.donor_key = None,
        }
    }

    /// Whether an operation can be planned with these values, perhaps only to find its other mistakes.
    pub(super) fn suffice(&self, op: OpName, sound: bool) -> bool {
        let granularity = self.granularity.as_ref().map(|granularity| granularity.value);
        op.own_fields(granularity).all(|field| self.has(field))
            && self.pattern.is_some()
            && (sound || !self.exclusions_unknown)
    }

    /// Whether a field has a value, or can have a neutral one instead.
    fn has(&self, field: Field) -> bool {
        match field.spec().value {
            ValueKind::OpName
            | ValueKind::Line
            | ValueKind::Patterns
            | ValueKind::Number
            | ValueKind::Ratio
            | ValueKind::Method => true,
            ValueKind::Pattern => self.pattern.is_some(),
            ValueKind::Granularity => self.granularity.is_some(),
            ValueKind::Ids => self.ids.contains_key(&field),
            ValueKind::Donor => self.donors.contains_key(&field),
            ValueKind::DonorKey => self.donor_key.is_some(),
        }
    }

    /// What can be checked without knowing the operation.
    pub(super) fn into_fragment(self) -> Fragment {
        Fragment { pattern: self.pattern, sources: self.donors.into_values().collect() }
    }
}

fn keep<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    *slot = value;
    slot.is_some()
}

fn keep_in<T>(slots: &mut BTreeMap<Field, T>, field: Field, value: Option<T>) -> bool {
    let valid = value.is_some();
    slots.remove(&field);
    slots.extend(value.map(|value| (field, value)));
    valid
}
