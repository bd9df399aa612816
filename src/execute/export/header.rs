//! [`Layout`]: the places of all tensors in a new shard.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::ExportError;
use super::head::Head;
use crate::checkpoint::{Origin, Shard};
use crate::plan::{Plan, Program};

/// A new shard: its header, and the byte ranges that it consists of.
#[derive(Debug)]
pub(super) struct Layout<'p> {
    pub(super) shard: &'p Shard,
    /// Length, JSON and padding, as written.
    pub(super) header: Vec<u8>,
    /// Byte ranges of the old file that are copied: all except those of edited tensors.
    pub(super) untouched: Vec<Range<u64>>,
    /// The end of the old file's data. The tensors of a head follow.
    data_end: u64,
    /// Sizes of the head's tensors, in bytes.
    head: Vec<u64>,
}

impl<'p> Layout<'p> {
    /// A layout for each shard of the base.
    pub(super) fn of_shards(plan: &'p Plan, head: Option<&Head>) -> Result<Vec<Self>, ExportError> {
        let shards = plan.base().weights.shards.iter().enumerate();
        shards.map(|(i, shard)| Self::new(plan, i, shard, head.filter(|head| head.shard == i))).collect()
    }

    fn new(
        plan: &'p Plan,
        number: usize,
        shard: &'p Shard,
        head: Option<&Head>,
    ) -> Result<Self, ExportError> {
        let mut header = read(shard)?;
        if plan.programs().is_empty() {
            // Every byte is copied, even those after the last tensor.
            let end = shard.fingerprint.len;
            let untouched = std::iter::once(shard.data_start..end).collect();
            return Ok(Self { shard, header, untouched, data_end: end, head: Vec::new() });
        }
        let data_end = shard.fingerprint.len - shard.trailing;
        let mut sizes = Vec::new();
        let mut offset = data_end - shard.data_start;
        let json = header.get(8..).unwrap_or_default();
        let mut json: Map<String, Value> =
            serde_json::from_slice(json).map_err(|error| ExportError::copy(shard, error.into()))?;
        stamp(&mut json, plan);
        for member in head.into_iter().flat_map(|head| &head.members) {
            let size = member.range.end - member.range.start;
            let entry = json!({
                "dtype": member.dtype.to_string(),
                "shape": member.shape,
                "data_offsets": [offset, offset + size],
            });
            json.insert(member.key.to_string(), entry);
            sizes.push(size);
            offset += size;
        }
        header = encode(&json);
        let untouched = untouched(plan, number, shard.data_start..data_end);
        Ok(Self { shard, header, untouched, data_end, head: sizes })
    }

    /// Size of the new file, in bytes.
    pub(super) fn file_len(&self) -> u64 {
        self.place(self.data_end) + self.head.iter().sum::<u64>()
    }

    /// The new offset of a byte of the old file's data.
    pub(super) fn place(&self, offset: u64) -> u64 {
        offset - self.shard.data_start + self.header.len() as u64
    }

    /// The offset of each tensor of the head.
    pub(super) fn head_places(&self) -> impl Iterator<Item = u64> {
        self.head.iter().scan(self.place(self.data_end), |next, size| {
            let place = *next;
            *next += size;
            Some(place)
        })
    }
}

/// The shard of a program's result, and its offset there.
pub(super) fn place(
    plan: &Plan,
    program: &Program,
    layouts: &[Layout<'_>],
    head: Option<&Head>,
) -> (usize, u64) {
    let (_, info) = &plan.base().weights.index[program.target()];
    match (&info.origin, head) {
        (Origin::Stored { shard, range }, _) => (*shard, layouts[*shard].place(range.start)),
        (Origin::Tied(_), Some(head)) => {
            let mut places = head.members.iter().zip(layouts[head.shard].head_places());
            let place = places.find(|(member, _)| member.key == *program.key()).map_or(0, |(_, place)| place);
            (head.shard, place)
        }
        (Origin::Tied(_), None) => unreachable!("an edited head breaks its tie"),
    }
}

/// The old header: length, JSON and padding.
fn read(shard: &Shard) -> Result<Vec<u8>, ExportError> {
    let mut header = vec![0; usize::try_from(shard.data_start).unwrap_or(0)];
    shard.read_at(&mut header, 0).map_err(|source| ExportError::copy(shard, source))?;
    Ok(header)
}

/// Records the surgery in the metadata, after existing entries.
fn stamp(header: &mut Map<String, Value>, plan: &Plan) {
    let digest = plan.digest().unwrap_or_default();
    let name = super::sidecar::surgery_name(plan);
    let known = header.get_mut("__metadata__").and_then(Value::as_object_mut);
    if let Some(metadata) = known {
        metadata.insert("mlxcel.digest".into(), digest.into());
        metadata.insert("mlxcel.surgery".into(), name.into());
    } else {
        let metadata = json!({ "mlxcel.digest": digest, "mlxcel.surgery": name });
        header.shift_remove("__metadata__");
        header.shift_insert(0, "__metadata__".into(), metadata);
    }
}

/// Length, JSON, and spaces that align the data to eight bytes.
fn encode(header: &Map<String, Value>) -> Vec<u8> {
    let mut json = Value::Object(header.clone()).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut json);
    bytes
}

/// The ranges of a shard's data between edited tensors.
fn untouched(plan: &Plan, number: usize, data: Range<u64>) -> Vec<Range<u64>> {
    let entries = plan.base().weights.index.entries();
    let mut edited: Vec<&Range<u64>> = plan
        .programs()
        .iter()
        .filter_map(|program| match entries.get(program.target().position()).map(|(_, info)| &info.origin) {
            Some(Origin::Stored { shard, range }) if *shard == number => Some(range),
            _ => None,
        })
        .collect();
    edited.sort_by_key(|range| range.start);
    let mut rest = Vec::new();
    let mut at = data.start;
    for range in edited {
        if at < range.start {
            rest.push(at..range.start);
        }
        at = at.max(range.end);
    }
    if at < data.end {
        rest.push(at..data.end);
    }
    rest
}
