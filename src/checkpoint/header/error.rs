//! [`HeaderError`]: why a header is not taken, and what helps. Most of what can be wrong is a damaged file; what a sound file
//! may have, and is refused all the same, has a help of its own.

/// What to do about a file that no writer wrote like this.
pub(crate) const DAMAGED: &str = "the file is damaged, cut short or not safetensors: get or write it again";
/// What to do about names.
pub(super) const RENAME: &str =
    "write the file again under names of printable characters, 4,096 bytes at most";
/// What to do about one name for two things.
pub(super) const TWICE: &str =
    "readers would take one or the other: write the file again, with each name once";
/// What to do about a dtype that came into the format later.
pub(super) const CONVERT: &str = "convert the tensor to f16, bf16 or f32";
/// What to do about dimensions that MLX cannot have.
pub(super) const RESHAPE: &str =
    "MLX counts along an axis in 32 bits, and no tensor has 64 axes: write the tensor in another shape";

/// Why a header is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// What to do about it.
    pub help: &'static str,
}

impl HeaderError {
    pub(super) fn new(reason: String, help: &'static str) -> Self {
        Self { reason, help }
    }
}

impl From<String> for HeaderError {
    fn from(reason: String) -> Self {
        Self::new(reason, DAMAGED)
    }
}
