//! Checks one tensor's entry, whichever reader read it.

use std::ops::Range;

use super::super::Dtype;
use super::super::dtype::byte_length;
use super::super::quoted::Quoted;

/// A dimension; MLX keeps shapes in i32.
pub(super) fn dimension(number: u64) -> Option<usize> {
    i32::try_from(number).ok().and_then(|number| usize::try_from(number).ok())
}

/// The dtype of a whole entry and the range of its bytes, relative to the data.
pub(super) fn check(
    name: &str,
    dtype: Option<Dtype>,
    shape: Option<&[usize]>,
    offsets: Option<(u64, u64)>,
) -> Result<(Dtype, Range<u64>), String> {
    let label = Quoted(name);
    let missing = |field| format!("tensor {label} has no `{field}`");
    let dtype = dtype.ok_or_else(|| missing("dtype"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    let (start, end) = offsets.ok_or_else(|| missing("data_offsets"))?;
    if end < start {
        return Err(format!("tensor {label} ends (byte {end}) before it begins (byte {start})"));
    }
    let needed = byte_length(dtype, shape).ok_or_else(|| {
        format!("tensor {label}: {dtype} {shape:?} is not a whole number of bytes, or too large")
    })?;
    if end - start != needed {
        let has = end - start;
        return Err(format!("tensor {label} has {has} bytes of data, but {dtype} {shape:?} takes {needed}"));
    }
    Ok((dtype, start..end))
}
