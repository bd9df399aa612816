//! Streams an edited checkpoint to a new directory: the same shards with the same tensors in the same order, and the
//! other files beside them.
//!
//! Everything is written into a directory beside the new one, which gets its name when all of it is there. Whatever
//! happens before, that directory goes away again.

mod error;
mod head;
mod header;
mod partial;
mod place;
mod sidecar;
mod splice;
mod staging;
mod stop;

pub use error::ExportError;
pub use partial::{NewFile, clear_leftovers};
pub use stop::{Stop, Stopped};

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{Executor, Report};
use crate::checkpoint::{Origin, Shard};
use crate::plan::{Plan, Program};
use head::Head;
use header::Layout;
use place::Place;
use sidecar::Sidecars;
use staging::Staging;

/// Bytes that are copied at a time where nothing is edited.
const CHUNK: usize = 4 << 20;

/// What was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// What was done to the weights.
    pub report: Report,
    /// Tensors that the new checkpoint stores.
    pub tensors: usize,
    /// Bytes of all its files.
    pub bytes: u64,
    /// What exports to the same place, or writers of a file there, had left behind when they were killed, removed now.
    pub cleared: Vec<PathBuf>,
}

/// An export that is written and has no name yet. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Unpublished<'s> {
    folder: Staging<'s>,
    exported: Exported,
}

impl Unpublished<'_> {
    /// What would be there.
    #[must_use]
    pub fn exported(&self) -> &Exported {
        &self.exported
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Something that appeared at the output, or a failure of the system; nothing is left then.
    pub fn publish(self) -> Result<Exported, ExportError> {
        self.folder.publish()?;
        Ok(self.exported)
    }

    /// Removes it, and says what would have been there.
    #[must_use]
    pub fn discard(self) -> Exported {
        self.exported
    }
}

/// Carries a plan out and writes the result to `output`, which must not exist.
///
/// `progress` hears how many bytes are written and how many there will be; when it is asked to `stop`, the export
/// ends soon and leaves nothing behind.
///
/// # Errors
/// Whatever prevents the whole export; nothing is left at `output` or beside it.
pub fn export(
    plan: &Plan,
    output: &Path,
    progress: &mut (dyn FnMut(u64, u64) + Send),
    stop: &Stop,
) -> Result<Exported, ExportError> {
    write(plan, output, progress, stop)?.publish()
}

/// The same, but for the name: whoever asks may look at the report first.
///
/// # Errors
/// As [`export`] has them.
pub fn write<'s>(
    plan: &Plan,
    output: &Path,
    progress: &mut (dyn FnMut(u64, u64) + Send),
    stop: &'s Stop,
) -> Result<Unpublished<'s>, ExportError> {
    let place = Place::of(output, plan)?;
    let mut executor = Executor::new(plan)?;
    let head = Head::of_broken_tie(plan);
    let layouts = Layout::of_shards(plan, head.as_ref())?;
    let files = Sidecars::of(plan)?;
    let total = layouts.iter().map(Layout::file_len).sum::<u64>() + files.bytes();
    let cleared = clear_leftovers(&place.output);
    place.check_space(total)?;
    let folder = Staging::new(place, stop)?;
    let mut writer = Writer { folder: folder.path(), progress, stop, written: 0, total };
    let report = writer
        .everything(plan, &mut executor, head.as_ref(), &layouts)
        .and_then(|()| Ok(executor.finish()?))
        .and_then(|report| {
            files.write(plan, folder.path(), &report, head.as_ref(), stop)?;
            Ok(report)
        });
    let report = report.map_err(|error| folder.explained(error))?;
    stop.check()?;
    progress(total, total);
    let stored = plan.base().weights.index.entries().iter();
    let tensors = stored.filter(|(_, info)| matches!(info.origin, Origin::Stored { .. })).count()
        + head.map_or(0, |head| head.members.len());
    let bytes = size(folder.path());
    Ok(Unpublished { folder, exported: Exported { report, tensors, bytes, cleared } })
}

/// Bytes of all files in a directory without directories.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

struct Writer<'w> {
    folder: &'w Path,
    progress: &'w mut (dyn FnMut(u64, u64) + Send),
    stop: &'w Stop,
    written: u64,
    total: u64,
}

impl Writer<'_> {
    /// Writes all shards: what is untouched, what programs make, and the rest of a head.
    fn everything(
        &mut self,
        plan: &Plan,
        executor: &mut Executor<'_>,
        head: Option<&Head>,
        layouts: &[Layout<'_>],
    ) -> Result<(), ExportError> {
        for layout in layouts {
            self.shard(layout)?;
        }
        for program in plan.programs() {
            let at = header::place(plan, program, layouts, head);
            self.edited(executor, program, layouts, at)?;
        }
        head.map_or(Ok(()), |head| self.unedited_head(plan, head, layouts))
    }

    /// Writes a shard's header and all bytes that no program makes.
    fn shard(&mut self, layout: &Layout<'_>) -> Result<(), ExportError> {
        let path = self.path(layout.shard);
        // Whoever may not read the weights may not read the results; their owner may write them.
        let mode = layout.shard.path.metadata().map_or(0o666, |metadata| metadata.mode());
        let mut file = create(&path, mode & 0o666 | 0o600).map_err(ExportError::write(&path))?;
        self.write(&mut file, &path, &layout.header)?;
        // What is not written below is made by programs, in the order of keys.
        file.set_len(layout.file_len()).map_err(ExportError::write(&path))?;
        for range in &layout.untouched {
            seek(&mut file, &path, layout.place(range.start))?;
            self.copy(layout.shard, range.clone(), &mut file, &path)?;
        }
        Ok(())
    }

    /// Runs a program and writes its result to its place.
    fn edited(
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

    /// Writes the members of a broken tie's head that no program makes: they are the embedding's as it was.
    fn unedited_head(&mut self, plan: &Plan, head: &Head, layouts: &[Layout<'_>]) -> Result<(), ExportError> {
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

    /// Where a shard is written: under the name it is read by.
    fn path(&self, shard: &Shard) -> PathBuf {
        self.folder.join(shard.path.file_name().unwrap_or_default())
    }
}

/// A new file of a mode, out of which the process's mask takes what it always does: as `cp` makes one.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(mode).open(path)
}

fn open(path: &Path) -> Result<File, ExportError> {
    File::options().write(true).open(path).map_err(ExportError::write(path))
}

fn seek(file: &mut File, path: &Path, offset: u64) -> Result<(), ExportError> {
    file.seek(SeekFrom::Start(offset)).map(drop).map_err(ExportError::write(path))
}
