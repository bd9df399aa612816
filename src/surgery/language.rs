//! The vocabulary of surgery files: the operations, their fields, and the words that values may be.
//!
//! Two tables, [`OPERATIONS`] and [`FIELDS`], say everything about a name. Lowering, suggestions and the JSON Schema read
//! them, and so does the planner through the `name()` of each type.

use std::fmt;

use serde::{Serialize, Serializer};

/// The name of an operation: the value of `op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpName {
    /// Multiply by a number.
    Scale,
    /// Add a task vector.
    Add,
    /// Zero structure.
    Prune,
    /// Take a donor's tensors.
    Replace,
    /// Blend two donors.
    Interpolate,
}

/// What the ids of `prune` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// Transformer blocks.
    Layer,
    /// Query heads.
    AttentionHead,
    /// Intermediate channels of an MLP.
    MlpChannel,
}

/// How two donors are blended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Linear.
    Lerp,
    /// Spherical (Shoemake, 1985).
    Slerp,
}

/// A field of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Op,
    Name,
    Pattern,
    Exclude,
    Factor,
    Alpha,
    Granularity,
    LayerIds,
    HeadIds,
    ChannelIds,
    Source,
    SourceKey,
    SourceA,
    SourceB,
    Ratio,
    Method,
}

/// What a field's value must be. A field has the same kind of value in every operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// The name of an operation.
    OpName,
    /// A line of text.
    Line,
    /// A pattern over tensor keys.
    Pattern,
    /// A pattern or a list of patterns.
    Patterns,
    /// A finite number.
    Number,
    /// A number from 0 to 1.
    Ratio,
    /// The name of a granularity.
    Granularity,
    /// The name of a blending method.
    Method,
    /// A list of whole numbers, not empty.
    Ids,
    /// The path of a donor.
    Donor,
    /// A donor's key, with `*` for captures.
    DonorKey,
}

/// What there is to know about an operation's name.
pub(super) struct OperationSpec {
    op: OpName,
    name: &'static str,
    /// One line for editors.
    pub(super) summary: &'static str,
    /// Its own fields, beside those that every operation has.
    fields: &'static [Field],
    /// The field that lists the ids of each granularity; empty for operations without granularities.
    pub(super) ids: &'static [(Granularity, Field)],
}

/// What there is to know about a field.
pub(super) struct FieldSpec {
    field: Field,
    name: &'static str,
    pub(super) value: ValueKind,
    /// Whether an operation may omit it.
    pub(super) optional: bool,
    /// The fields with the same purpose in other operations, this one included: one written for another is misplaced.
    pub(super) kin: &'static [Field],
    /// What it means, for editors.
    pub(super) description: &'static str,
}

/// The operations, in the order of [`OpName`].
const OPERATIONS: [OperationSpec; 5] = [
    OperationSpec {
        op: OpName::Scale,
        name: "scale",
        summary: "Multiply every matched tensor by a number; quantized weights through their scales and biases",
        fields: &[Field::Factor],
        ids: &[],
    },
    OperationSpec {
        op: OpName::Add,
        name: "add",
        summary: "Add a task vector: base + alpha · donor, for tensors of the same key and shape",
        fields: &[Field::Source, Field::Alpha],
        ids: &[],
    },
    OperationSpec {
        op: OpName::Prune,
        name: "prune",
        summary: "Zero layers, attention heads or MLP channels without changing shapes",
        fields: &[Field::Granularity],
        ids: &[
            (Granularity::Layer, Field::LayerIds),
            (Granularity::AttentionHead, Field::HeadIds),
            (Granularity::MlpChannel, Field::ChannelIds),
        ],
    },
    OperationSpec {
        op: OpName::Replace,
        name: "replace",
        summary: "Replace the matched tensors with a donor's",
        fields: &[Field::Source, Field::SourceKey],
        ids: &[],
    },
    OperationSpec {
        op: OpName::Interpolate,
        name: "interpolate",
        summary: "Replace the matched tensors with a blend of two donors",
        fields: &[Field::SourceA, Field::SourceB, Field::Ratio, Field::Method],
        ids: &[],
    },
];

const STRENGTHS: &[Field] = &[Field::Factor, Field::Alpha, Field::Ratio];
const IDS: &[Field] = &[Field::LayerIds, Field::HeadIds, Field::ChannelIds];
const DONORS: &[Field] = &[Field::Source, Field::SourceA, Field::SourceB];

/// The fields, in the order of [`Field`].
const FIELDS: [FieldSpec; 16] = [
    required(Field::Op, "op", ValueKind::OpName, &[], "The operation"),
    optional(Field::Name, "name", ValueKind::Line, "A name for plans and logs"),
    required(
        Field::Pattern,
        "pattern",
        ValueKind::Pattern,
        &[],
        "The tensors to edit: a glob over the whole key (* ? [0-3] [!a] {a,b} {0..15}), in quotes",
    ),
    optional(
        Field::Exclude,
        "exclude",
        ValueKind::Patterns,
        "Matched tensors to leave alone: a pattern or a list of patterns",
    ),
    required(Field::Factor, "factor", ValueKind::Number, STRENGTHS, "The number to multiply by"),
    FieldSpec {
        kin: STRENGTHS,
        ..optional(Field::Alpha, "alpha", ValueKind::Number, "The weight of the donor")
    },
    required(Field::Granularity, "granularity", ValueKind::Granularity, &[], "What the ids count"),
    required(
        Field::LayerIds,
        "layer_ids",
        ValueKind::Ids,
        IDS,
        "The layers to zero: whole numbers, counted from 0",
    ),
    required(
        Field::HeadIds,
        "head_ids",
        ValueKind::Ids,
        IDS,
        "The query heads to zero: whole numbers, counted from 0",
    ),
    required(
        Field::ChannelIds,
        "channel_ids",
        ValueKind::Ids,
        IDS,
        "The intermediate channels to zero: whole numbers, counted from 0",
    ),
    required(Field::Source, "source", ValueKind::Donor, DONORS, "The donor"),
    required(
        Field::SourceKey,
        "source_key",
        ValueKind::DonorKey,
        &[],
        "The donor's key; its * take what the pattern's * matched, from left to right",
    ),
    required(Field::SourceA, "source_a", ValueKind::Donor, DONORS, "The first donor"),
    required(Field::SourceB, "source_b", ValueKind::Donor, DONORS, "The second donor"),
    required(
        Field::Ratio,
        "ratio",
        ValueKind::Ratio,
        STRENGTHS,
        "The weight of source_b: 0 is all of source_a, 1 all of source_b",
    ),
    required(Field::Method, "method", ValueKind::Method, &[], "lerp: linear; slerp: spherical"),
];

// `spec` finds a row by its place.
const _: () = {
    let mut at = 0;
    while at < OPERATIONS.len() {
        assert!(OPERATIONS[at].op as usize == at, "OPERATIONS must be in the order of OpName");
        at += 1;
    }
    at = 0;
    while at < FIELDS.len() {
        assert!(FIELDS[at].field as usize == at, "FIELDS must be in the order of Field");
        at += 1;
    }
};

const fn required(
    field: Field,
    name: &'static str,
    value: ValueKind,
    kin: &'static [Field],
    description: &'static str,
) -> FieldSpec {
    FieldSpec { field, name, value, optional: false, kin, description }
}

const fn optional(
    field: Field,
    name: &'static str,
    value: ValueKind,
    description: &'static str,
) -> FieldSpec {
    FieldSpec { field, name, value, optional: true, kin: &[], description }
}

impl OpName {
    /// All operations, in the order of the documentation.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        OPERATIONS.iter().map(|spec| spec.op)
    }

    /// The names of all operations.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        OPERATIONS.iter().map(|spec| spec.name)
    }

    /// The operation of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|op| op.name() == name)
    }

    /// The name, as it is written in YAML.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    pub(super) fn spec(self) -> &'static OperationSpec {
        &OPERATIONS[self as usize]
    }

    /// Its own fields, with the ids of a granularity where one is known.
    pub(super) fn own_fields(self, granularity: Option<Granularity>) -> impl Iterator<Item = Field> {
        let ids = granularity.and_then(|granularity| self.ids_field(granularity));
        self.spec().fields.iter().copied().chain(ids)
    }

    /// The field that lists the ids of a granularity.
    pub(super) fn ids_field(self, granularity: Granularity) -> Option<Field> {
        self.spec().ids.iter().find(|(other, _)| *other == granularity).map(|(_, field)| *field)
    }

    /// The fields that list ids of any granularity.
    pub(super) fn ids_fields(self) -> impl Iterator<Item = Field> {
        self.spec().ids.iter().map(|(_, field)| *field)
    }
}

impl Field {
    /// All fields.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        FIELDS.iter().map(|spec| spec.field)
    }

    /// The field of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|field| field.name() == name)
    }

    /// The name, as it is written in YAML.
    pub(super) fn name(self) -> &'static str {
        self.spec().name
    }

    pub(super) fn spec(self) -> &'static FieldSpec {
        &FIELDS[self as usize]
    }

    /// Whether every operation has it.
    pub(super) fn is_common(self) -> bool {
        matches!(self, Self::Op | Self::Name | Self::Pattern | Self::Exclude)
    }

    /// The granularity whose ids it lists.
    pub(super) fn granularity(self) -> Option<Granularity> {
        let mut ids = OPERATIONS.iter().flat_map(|spec| spec.ids);
        ids.find(|(_, field)| *field == self).map(|(granularity, _)| *granularity)
    }
}

impl Granularity {
    pub(super) const ALL: [Self; 3] = [Self::Layer, Self::AttentionHead, Self::MlpChannel];

    /// The name, as it is written in YAML.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Layer => "layer",
            Self::AttentionHead => "attention_head",
            Self::MlpChannel => "mlp_channel",
        }
    }

    /// The granularity of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|granularity| granularity.name() == name)
    }
}

impl Method {
    pub(super) const ALL: [Self; 2] = [Self::Lerp, Self::Slerp];

    /// The name, as it is written in YAML.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lerp => "lerp",
            Self::Slerp => "slerp",
        }
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for OpName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_what_it_names() {
        assert!(OpName::all().all(|op| OpName::named(op.name()) == Some(op)));
        assert!(Field::all().all(|field| Field::named(field.name()) == Some(field)));
        assert!(Granularity::ALL.iter().all(|one| Granularity::named(one.name()) == Some(*one)));
    }

    #[test]
    fn every_field_that_some_operations_have_is_one_of_theirs() {
        let own = |field: Field| {
            OpName::all().any(|op| op.own_fields(None).chain(op.ids_fields()).any(|own| own == field))
        };
        assert!(Field::all().all(|field| field.is_common() != own(field)));
    }
}
