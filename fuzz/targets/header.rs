//! A header is read or refused; what is read without trailing bytes, the format's own crate reads too, to the same end.
//! Input: two bytes that say how much data follows the header, and the header's text.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use mlxcel::internals::checkpoint::{Header, byte_length};
use safetensors::SafeTensors;

fuzz_target!(|input: &[u8]| {
    let Some((size, text)) = input.split_first_chunk::<2>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let data = u64::from(u16::from_le_bytes(*size));
    let start = 8 + text.len() as u64;
    let Ok(header) = Header::parse(text, start, start + data) else { return };

    let mut at = start;
    for tensor in &header.tensors {
        assert_eq!(tensor.range.start, at);
        assert_eq!(byte_length(tensor.dtype, &tensor.shape), Some(tensor.range.end - tensor.range.start));
        at = tensor.range.end;
    }
    assert_eq!(at + header.trailing, start + data);
    let names: HashSet<&str> = header.tensors.iter().map(|tensor| tensor.key.as_str()).collect();
    assert_eq!(names.len(), header.tensors.len());

    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(usize::try_from(at).unwrap(), 0);
    let (_, theirs) = SafeTensors::read_metadata(&bytes).expect("the crate reads what we read");
    for tensor in &header.tensors {
        let info = theirs.info(tensor.key.as_str()).expect("the same names");
        assert_eq!((info.dtype, &info.shape), (tensor.dtype, &tensor.shape));
        assert_eq!(info.data_offsets.0 as u64 + start, tensor.range.start);
    }
});
