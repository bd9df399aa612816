//! The plan's identity: SHA-256 over canonical JSON (RFC 8785) of what the plan does and to what.
//!
//! Only strings, integers and arrays occur, fields are declared in the order of their names, and `serde_json` escapes
//! as the RFC asks: so its compact output is the canonical form, and nothing needs to be sorted or kept in memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{Action, Donor, Program, Region, TensorRef};
use crate::checkpoint::Weights;

/// The version of the JSON outputs and of what the digest covers.
pub(super) const FORMAT_VERSION: &str = "1.0";

/// `sha256:…` of a plan, or `None` when no action is left.
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
    // Donors are numbered by their first use in a program, so that dropped actions leave no trace.
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut used = Vec::new();
    for tensor in programs.iter().flat_map(|p| &p.actions).flat_map(|(_, action)| tensors(action)) {
        places.entry(tensor.donor).or_insert_with(|| {
            used.push(Listing(&donors[tensor.donor].weights));
            used.len() - 1
        });
    }
    let programs = Programs { programs, places };
    Document { base: Listing(base), donors: used, format_version: FORMAT_VERSION, programs }
}

fn tensors(action: &Action) -> impl Iterator<Item = &TensorRef> {
    let (first, second) = match action {
        Action::Scale { .. } | Action::Zero { .. } => (None, None),
        Action::Add { donor, .. } | Action::Replace { donor } => (Some(donor), None),
        Action::Blend { a, b, .. } => (Some(a), Some(b)),
    };
    first.into_iter().chain(second)
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

/// The programs, each made while it is written: together they would take more memory than the plan.
struct Programs<'p> {
    programs: &'p [Program],
    places: HashMap<usize, usize>,
}

impl Serialize for Programs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.programs.iter().map(|program| ProgramOf {
            actions: Actions(&program.actions, &self.places),
            dtype: Name(program.dtype),
            shape: &program.shape,
            target: program.key.as_str(),
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

struct Actions<'p>(&'p [(usize, Action)], &'p HashMap<usize, usize>);

impl Serialize for Actions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(_, action)| ActionOf::new(action, self.1)))
    }
}

/// Each variant with its fields in the order of their names, `kind` among them.
#[derive(Serialize)]
#[serde(untagged)]
enum ActionOf<'p> {
    Scale { factor: String, kind: &'static str },
    Add { alpha: String, donor: DonorOf<'p>, kind: &'static str },
    Zero { kind: &'static str, region: RegionOf },
    Replace { donor: DonorOf<'p>, kind: &'static str },
    Blend { a: DonorOf<'p>, b: DonorOf<'p>, kind: &'static str, method: &'static str, ratio: String },
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

impl<'p> ActionOf<'p> {
    fn new(action: &'p Action, places: &HashMap<usize, usize>) -> Self {
        let hex = |number: f64| format!("{:016x}", number.to_bits());
        let donor = |tensor: &'p TensorRef| DonorOf {
            donor: places.get(&tensor.donor).copied().unwrap_or_default(),
            tensor: tensor.key.as_str(),
        };
        match action {
            Action::Scale { factor } => Self::Scale { factor: hex(*factor), kind: "scale" },
            Action::Add { donor: tensor, alpha } => {
                Self::Add { alpha: hex(*alpha), donor: donor(tensor), kind: "add" }
            }
            Action::Zero { region } => Self::Zero { kind: "zero", region: RegionOf::new(region) },
            Action::Replace { donor: tensor } => Self::Replace { donor: donor(tensor), kind: "replace" },
            Action::Blend { a, b, ratio, method } => Self::Blend {
                a: donor(a),
                b: donor(b),
                kind: "blend",
                method: method.name(),
                ratio: hex(*ratio),
            },
        }
    }
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
