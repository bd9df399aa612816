//! [`Pool`]: buffers that inputs are read into, and used again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a buffer is longer than what is read into it.
pub(super) const ROOM_TO_SHIFT: usize = 32;

/// The bytes of one tile in flight; one buffer an input.
pub(super) type Buffers = Vec<Vec<u8>>;

/// Buffers that nobody uses at the moment. There are as many as tiles were in flight at a time.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Buffers>>);

impl Pool {
    /// Lends buffers for some work: those that came back last, which a cache still holds.
    pub(super) fn lend<T>(&self, work: impl FnOnce(&mut Buffers) -> T) -> T {
        let mut buffers = self.idle().pop().unwrap_or_default();
        let made = work(&mut buffers);
        self.idle().push(buffers);
        made
    }

    /// Frees them all.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }

    /// Their bytes, without the few that they can be shifted by.
    pub(super) fn bytes(&self) -> u64 {
        self.idle()
            .iter()
            .flatten()
            .map(|buffer| buffer.capacity().saturating_sub(ROOM_TO_SHIFT) as u64)
            .sum()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Buffers>> {
        // Whatever a panic left is a list of buffers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far into a buffer to read, so that copying is fast: `rep movsb`, which Linux copies by, takes several times as
/// long on AMD's Zen 3 and 4 where the target is less than 32 bytes behind the source in their pages.
pub(super) fn shift(buffer: *const u8, offset: u64) -> usize {
    let ahead = (buffer.addr() as u64).wrapping_sub(offset) % 4096;
    if (1..ROOM_TO_SHIFT as u64).contains(&ahead) { ROOM_TO_SHIFT } else { 0 }
}
