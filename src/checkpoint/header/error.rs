//! [`HeaderError`]: why a header is refused, and what helps. Most errors come from a damaged file; what an intact file may
//! have and is refused nevertheless has its own help.

/// Help for a file that no writer would write.
pub(crate) const DAMAGED: &str =
    "the file is damaged, truncated or not safetensors; download or write it again";
/// Help for names.
pub(super) const RENAME: &str =
    "rewrite the file with names of printable characters, at most 4,096 bytes long";
/// Help for a name that occurs twice.
pub(super) const TWICE: &str = "rewrite the file with each name once; readers disagree on which entry counts";
/// Help for a dtype that was added to the format later.
pub(super) const CONVERT: &str = "convert the tensor to f16, bf16 or f32";
/// Help for dimensions that MLX does not support.
pub(super) const RESHAPE: &str = "rewrite the tensor in another shape; MLX supports 32-bit dimensions";

/// Why a header is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// How to fix it.
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
