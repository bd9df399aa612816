//! [`Pool`]: reusable buffers that inputs are read into.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Extra bytes of a buffer, so that reading can begin later (see [`shift`]).
pub(super) const ROOM_TO_SHIFT: usize = 32;

/// The buffers of one tile in flight, one for each input.
pub(super) type Buffers = Vec<Vec<u8>>;

/// Idle buffers. There are as many sets as tiles were in flight at a time.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Buffers>>);

impl Pool {
    /// Lends the buffers that came back last, which a cache still holds.
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

    /// Bytes of all buffers, without the extra ones.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes_after(0, 0, 0)
    }

    /// Upper bound of [`bytes`](Self::bytes) after a program with `tiles` in flight, each with `buffers` of `bytes`. A bound,
    /// because any tile may get any buffers.
    pub(super) fn bytes_after(&self, tiles: usize, buffers: usize, bytes: u64) -> u64 {
        let idle = self.idle();
        let grown = |of_a_tile: &Buffers| {
            let longer = of_a_tile.iter().enumerate().map(|(i, buffer)| {
                let now = buffer.capacity().saturating_sub(ROOM_TO_SHIFT) as u64;
                if i < buffers { now.max(bytes) } else { now }
            });
            longer.sum::<u64>() + buffers.saturating_sub(of_a_tile.len()) as u64 * bytes
        };
        let new = tiles.saturating_sub(idle.len()) as u64 * buffers as u64 * bytes;
        idle.iter().map(grown).sum::<u64>() + new
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Buffers>> {
        // A panic leaves a valid list of buffers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The offset in a buffer to read to. Kernel copies (`rep movsb`) are several times slower on AMD's Zen 3 and 4 where the
/// target is 1 to 31 bytes after the source within their pages.
pub(super) fn shift(buffer: *const u8, offset: u64) -> usize {
    let ahead = (buffer.addr() as u64).wrapping_sub(offset) % 4096;
    if (1..ROOM_TO_SHIFT as u64).contains(&ahead) { ROOM_TO_SHIFT } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_are_used_again_cost_nothing_and_others_stay_beside_new_ones() {
        let pool = Pool::default();
        assert_eq!(pool.bytes_after(3, 2, 100), 600);
        let two_of_a_tile =
            || vec![Vec::with_capacity(100 + ROOM_TO_SHIFT), Vec::with_capacity(50 + ROOM_TO_SHIFT)];
        pool.lend(|one| {
            *one = two_of_a_tile();
            pool.lend(|other| *other = two_of_a_tile());
        });
        assert_eq!(pool.bytes(), 300);
        // As many tiles, fewer, more; longer buffers, shorter, more and none of them.
        let after = |tiles, buffers, bytes| pool.bytes_after(tiles, buffers, bytes);
        assert_eq!([after(2, 2, 50), after(1, 2, 50), after(3, 2, 50)], [300, 300, 400]);
        assert_eq!(
            [after(2, 1, 100), after(2, 2, 100), after(2, 3, 10), after(2, 0, 0)],
            [300, 400, 320, 300]
        );
    }
}
