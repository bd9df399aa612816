//! Which fields there are, and which operation takes which.

use super::Granularity;

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

/// The operations, by the word that `op` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Scale,
    Add,
    Prune,
    Replace,
    Interpolate,
}

impl Field {
    pub(super) const ALL: [Field; 16] = [
        Field::Op,
        Field::Name,
        Field::Pattern,
        Field::Exclude,
        Field::Factor,
        Field::Alpha,
        Field::Granularity,
        Field::LayerIds,
        Field::HeadIds,
        Field::ChannelIds,
        Field::Source,
        Field::SourceKey,
        Field::SourceA,
        Field::SourceB,
        Field::Ratio,
        Field::Method,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Field::Op => "op",
            Field::Name => "name",
            Field::Pattern => "pattern",
            Field::Exclude => "exclude",
            Field::Factor => "factor",
            Field::Alpha => "alpha",
            Field::Granularity => "granularity",
            Field::LayerIds => "layer_ids",
            Field::HeadIds => "head_ids",
            Field::ChannelIds => "channel_ids",
            Field::Source => "source",
            Field::SourceKey => "source_key",
            Field::SourceA => "source_a",
            Field::SourceB => "source_b",
            Field::Ratio => "ratio",
            Field::Method => "method",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Whether every operation may do without it.
    pub(super) fn is_optional(self) -> bool {
        matches!(self, Field::Name | Field::Exclude | Field::Alpha)
    }

    /// Whether it lists ids.
    pub(super) fn is_ids(self) -> bool {
        matches!(self, Field::LayerIds | Field::HeadIds | Field::ChannelIds)
    }

    /// The fields that do in other operations what this one does in its own: whoever writes one there meant them.
    pub(super) fn kin(self) -> &'static [Field] {
        match self {
            Field::Factor | Field::Alpha | Field::Ratio => &[Field::Factor, Field::Alpha, Field::Ratio],
            Field::LayerIds | Field::HeadIds | Field::ChannelIds => {
                &[Field::LayerIds, Field::HeadIds, Field::ChannelIds]
            }
            Field::Source | Field::SourceA | Field::SourceB => {
                &[Field::Source, Field::SourceA, Field::SourceB]
            }
            _ => &[],
        }
    }
}

impl Op {
    pub(super) const ALL: [Op; 5] = [Op::Scale, Op::Add, Op::Prune, Op::Replace, Op::Interpolate];

    pub(super) fn name(self) -> &'static str {
        match self {
            Op::Scale => "scale",
            Op::Add => "add",
            Op::Prune => "prune",
            Op::Replace => "replace",
            Op::Interpolate => "interpolate",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The fields of its own, `alpha` being the only optional one. `prune` needs a granularity to know its ids.
    pub(super) fn own(self, granularity: Option<Granularity>) -> Vec<Field> {
        match self {
            Op::Scale => vec![Field::Factor],
            Op::Add => vec![Field::Source, Field::Alpha],
            Op::Prune => {
                let mut fields = vec![Field::Granularity];
                fields.extend(granularity.map(ids_of));
                fields
            }
            Op::Replace => vec![Field::Source, Field::SourceKey],
            Op::Interpolate => vec![Field::SourceA, Field::SourceB, Field::Ratio, Field::Method],
        }
    }
}

/// The field that lists what a granularity counts.
pub(super) fn ids_of(granularity: Granularity) -> Field {
    match granularity {
        Granularity::Layer => Field::LayerIds,
        Granularity::AttentionHead => Field::HeadIds,
        Granularity::MlpChannel => Field::ChannelIds,
    }
}
