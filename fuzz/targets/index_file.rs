//! An index file is read or refused; what is read names only files beside it, each once and in order.

#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use mlxcel::internals::checkpoint::Listing;

fuzz_target!(|text: &str| {
    let Ok(listing) = Listing::parse(text) else { return };
    assert!(listing.shards.is_sorted_by(|a, b| a < b));
    for shard in &listing.shards {
        let mut parts = Path::new(shard).components();
        assert!(matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)), "{shard:?}");
    }
    let mut named = vec![false; listing.shards.len()];
    for (_, shard) in &listing.tensors {
        named[*shard] = true;
    }
    assert!(named.into_iter().all(|named| named));
});
