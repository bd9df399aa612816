//! The plan's identity: SHA-256 over canonical JSON (RFC 8785) of what the plan does and to what.
//!
//! Only strings, integers and arrays occur, fields are written in the order of their names, and `serde_json` escapes as
//! the RFC requires: its compact output is the canonical form, and is hashed while it is written.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::action::{Action, Parameter, Region};
use super::donor::Donor;
use super::ids::{DonorId, StepId};
use super::program::Program;
use crate::checkpoint::Weights;

/// The version of every JSON document that mlxcel prints, and of what the digest covers.
pub(crate) const FORMAT_VERSION: &str = "1.0";

/// `sha256:…` of a plan; `None` if it has no programs.
pub(super) fn digest(base: &Weights, donors: &[Donor], programs: &[Program]) -> Option<String> {
    if programs.is_empty() {
        return None;
    }
    let mut hasher = Hasher(Sha256::new());
    let mut out = io::BufWriter::with_capacity(1 << 16, &mut hasher);
    serde_json::to_writer(&mut out, &document(base, donors, programs)).ok()?;
    drop(out);
    let mut text = String::from("sha256:");
    for byte in hasher.0.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Document<'p> {
    base: Listing<'p>,
    donors: Vec<Listing<'p>>,
    format_version: &'static str,
    programs: Programs<'p>,
}

fn document<'p>(base: &'p Weights, donors: &'p [Donor], programs: &'p [Program]) -> Document<'p> {
    // Donors are numbered by their first use in a program, so that dropped actions do not change the digest.
    let mut places: HashMap<DonorId, usize> = HashMap::new();
    let mut used = Vec::new();
    for tensor in programs.iter().flat_map(Program::actions).flat_map(|(_, action)| action.donors()) {
        places.entry(tensor.donor).or_insert_with(|| {
            used.push(Listing(&donors[tensor.donor.position()].weights));
            used.len() - 1
        });
    }
    let programs = Programs { programs, places };
    Document { base: Listing(base), donors: used, format_version: FORMAT_VERSION, programs }
}

/// A checkpoint: sizes of its files, and names, dtypes and shapes of its tensors.
struct Listing<'p>(&'p Weights);

impl Serialize for Listing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'p> {
            files: Vec<u64>,
            tensors: Tensors<'p>,
        }
        struct Tensors<'p>(&'p Weights);
        impl Serialize for Tensors<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(
                    self.0
                        .index
                        .entries()
                        .iter()
                        .map(|(key, info)| (key.as_str(), Name(info.dtype), info.shape.as_slice())),
                )
            }
        }
        let files = self.0.shards.iter().map(|shard| shard.fingerprint.len).collect();
        Fields { files, tensors: Tensors(self.0) }.serialize(serializer)
    }
}

/// Something written by its name.
struct Name<T>(T);

impl<T: std::fmt::Display> Serialize for Name<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The programs, each built while it is written: together they would take more memory than the plan.
struct Programs<'p> {
    programs: &'p [Program],
    places: HashMap<DonorId, usize>,
}

impl Serialize for Programs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.programs.iter().map(|program| ProgramOf {
            actions: Actions(program.actions(), &self.places),
            dtype: Name(program.dtype()),
            shape: program.shape(),
            target: program.key().as_str(),
        }))
    }
}

#[derive(Serialize)]
struct ProgramOf<'p> {
    actions: Actions<'p>,
    dtype: Name<crate::checkpoint::Dtype>,
    shape: &'p [usize],
    target: &'p str,
}

struct Actions<'p>(&'p [(StepId, Action)], &'p HashMap<DonorId, usize>);

impl Serialize for Actions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(_, action)| ActionOf { action, places: self.1 }))
    }
}

/// An action: its kind and its parameters, in the order of their names.
struct ActionOf<'p> {
    action: &'p Action,
    places: &'p HashMap<DonorId, usize>,
}

impl Serialize for ActionOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const KIND: &str = "kind";
        let mut parameters = self.action.parameters();
        parameters.sort_unstable_by_key(|(name, _)| *name);
        let mut map = serializer.serialize_map(Some(parameters.len() + 1))?;
        let behind = parameters.partition_point(|(name, _)| *name < KIND);
        for (at, (name, parameter)) in parameters.into_iter().enumerate() {
            if at == behind {
                map.serialize_entry(KIND, self.action.kind())?;
            }
            map.serialize_key(name)?;
            match parameter {
                Parameter::Number(number) => map.serialize_value(&format!("{:016x}", number.to_bits()))?,
                Parameter::Donor(tensor) => map.serialize_value(&DonorOf {
                    donor: self.places.get(&tensor.donor).copied().unwrap_or_default(),
                    tensor: tensor.key.as_str(),
                })?,
                Parameter::Method(method) => map.serialize_value(method.name())?,
                Parameter::Region(region) => map.serialize_value(&RegionOf::new(region))?,
            }
        }
        if behind == self.action.parameters().len() {
            map.serialize_entry(KIND, self.action.kind())?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct DonorOf<'p> {
    donor: usize,
    tensor: &'p str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RegionOf {
    Whole(&'static str),
    Slices { axis: usize, ranges: Vec<[usize; 2]> },
}

impl RegionOf {
    fn new(region: &Region) -> Self {
        match region {
            Region::Whole => Self::Whole("whole"),
            Region::Slices { axis, ranges } => {
                Self::Slices { axis: *axis, ranges: ranges.iter().map(|r| [r.start, r.end]).collect() }
            }
        }
    }
}
