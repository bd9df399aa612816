//! [`Writer`]: writes the shards of an export.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::files::{create, open, seek};
use super::head::Head;
use super::header::{self, Layout};
use super::{ExportError, Stop};
use crate::checkpoint::Shard;
use crate::execute::Executor;
use crate::plan::{Plan, Program};

/// Bytes that are copied at a time where nothing is edited.
const CHUNK: usize = 4 << 20;

/// Writes shards into a directory.
pub(super) struct Writer<'w> {
    pub(super) folder: &'w Path,
    /// Called with the bytes written so far and those of all shards and files.
    pub(super) progress: &'w mut (dyn FnMut(u64, u64) + Send),
    pub(super) stop: &'w Stop,
    pub(super) written: u64,
    pub(super) total: u64,
}

impl Writer<'_> {
    /// Writes all shards: untouched bytes, the programs' results, and the rest of a head.
    pub(super) fn write_shards(
        &mut self,
        plan: &Plan,
        executor: &mut Executor<'_>,
        head: Option<&Head>,
        layouts: &[Layout<'_>],
    ) -> Result<(), ExportError> {
        for layout in layouts {
            self.write_untouched(layout)?;
        }
        for program in plan.programs() {
            let at = header::place(plan, program, layouts, head);
            self.write_edited(executor, program, layouts, at)?;
        }
        head.map_or(Ok(()), |head| self.write_unedited_head(plan, head, layouts))
    }

    /// Writes a shard's header and all bytes that no program edits.
    fn write_untouched(&mut self, layout: &Layout<'_>) -> Result<(), ExportError> {
        let path = self.path(layout.shard);
        // The mode of the source, so that no other user can read the results; the owner may always write.
        let mode = layout.shard.path.metadata().map_or(0o666, |metadata| metadata.mode());
        let mut file = create(&path, mode & 0o666 | 0o600).map_err(ExportError::write(&path))?;
        self.write(&mut file, &path, &layout.header)?;
        // Programs fill the gaps later, in key order.
        file.set_len(layout.file_len()).map_err(ExportError::write(&path))?;
        for range in &layout.untouched {
            seek(&mut file, &path, layout.place(range.start))?;
            self.copy(layout.shard, range.clone(), &mut file, &path)?;
        }
        Ok(())
    }

    /// Runs a program and writes its result to its place.
    fn write_edited(
        &mut self,
        executor: &mut Executor<'_>,
        program: &Program,
        layouts: &[Layout<'_>],
        (shard, offset): (usize, u64),
    ) -> Result<(), ExportError> {
        let path = self.path(layouts[shard].shard);
        let mut file = open(&path)?;
        seek(&mut file, &path, offset)?;
        executor.stream(program, &mut |bytes: &[u8]| self.write(&mut file, &path, bytes))
    }

    /// Writes the tensors of a broken tie's head that no program edits: copies of the embedding's.
    fn write_unedited_head(
        &mut self,
        plan: &Plan,
        head: &Head,
        layouts: &[Layout<'_>],
    ) -> Result<(), ExportError> {
        let path = self.path(layouts[head.shard].shard);
        let mut file = open(&path)?;
        for (member, offset) in head.members.iter().zip(layouts[head.shard].head_places()) {
            if !member.edited {
                seek(&mut file, &path, offset)?;
                self.copy(
                    &plan.base().weights.shards[member.source],
                    member.range.clone(),
                    &mut file,
                    &path,
                )?;
            }
        }
        Ok(())
    }

    fn copy(
        &mut self,
        shard: &Shard,
        range: Range<u64>,
        file: &mut File,
        path: &Path,
    ) -> Result<(), ExportError> {
        let mut buffer = vec![0; CHUNK.min(usize::try_from(range.end - range.start).unwrap_or(CHUNK))];
        let mut at = range.start;
        while at < range.end {
            let n = buffer.len().min(usize::try_from(range.end - at).unwrap_or(CHUNK));
            shard.read_at(&mut buffer[..n], at).map_err(|source| ExportError::copy(shard, source))?;
            self.write(file, path, &buffer[..n])?;
            at += n as u64;
        }
        Ok(())
    }

    fn write(&mut self, file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
        self.stop.check()?;
        file.write_all(bytes).map_err(ExportError::write(path))?;
        self.written += bytes.len() as u64;
        (self.progress)(self.written, self.total);
        Ok(())
    }

    /// The path that a shard is written to, under its own name.
    fn path(&self, shard: &Shard) -> PathBuf {
        self.folder.join(shard.path.file_name().unwrap_or_default())
    }
}
