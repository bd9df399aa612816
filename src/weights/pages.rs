//! [`Pages`]: page-aligned memory for one tensor on its way to MLX, reused where MLX copies.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use memmap2::MmapMut;

/// Hands out [`Pages`] and takes them back: fresh pages cost several times as much as the copy that fills them.
#[derive(Debug, Default)]
pub(super) struct PagePool {
    spare: Arc<Mutex<Option<MmapMut>>>,
}

/// Page-aligned memory, so that a GPU can use it where it is. Goes back to its pool when dropped.
#[derive(Debug)]
pub(super) struct Pages {
    memory: Option<MmapMut>,
    len: usize,
    pool: Weak<Mutex<Option<MmapMut>>>,
}

impl PagePool {
    /// `len` bytes of unspecified content.
    pub(super) fn take(&self, len: usize) -> io::Result<Pages> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let memory = match spare.filter(|memory| memory.len() >= len) {
            Some(memory) => memory,
            None => MmapMut::map_anon(len.max(1))?,
        };
        Ok(Pages { memory: Some(memory), len, pool: Arc::downgrade(&self.spare) })
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory[..len])
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let (Some(pool), Some(memory)) = (self.pool.upgrade(), self.memory.take()) {
            let mut spare = pool.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.as_ref().is_none_or(|other| other.len() < memory.len()) {
                *spare = Some(memory);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_pages_serve_the_next_tensor_that_fits() {
        let pool = PagePool::default();
        let mut first = pool.take(1 << 20).unwrap();
        let address = first.as_mut().as_ptr();
        drop(first);
        let mut second = pool.take(1 << 10).unwrap();
        assert_eq!(second.as_mut().as_ptr(), address);
        assert_eq!(second.as_mut().len(), 1 << 10);
    }

    #[test]
    fn no_bytes_at_all_are_fine() {
        assert_eq!(PagePool::default().take(0).unwrap().as_mut().len(), 0);
    }
}
