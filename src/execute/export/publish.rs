//! [`export`] and its two halves: [`write`](fn@write), and [`Unpublished::publish`].

use std::fs;
use std::path::{Path, PathBuf};

use super::head::Head;
use super::header::Layout;
use super::place::Place;
use super::sidecar::Sidecars;
use super::staging::Staging;
use super::writer::Writer;
use super::{ExportError, Stop, clear_leftovers};
use crate::checkpoint::Origin;
use crate::execute::{Executor, Report};
use crate::plan::Plan;

/// A finished export.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// What the plan did to the weights.
    pub report: Report,
    /// Number of tensors that the new checkpoint stores.
    pub tensors: usize,
    /// Size of all its files, in bytes.
    pub bytes: u64,
    /// Leftovers of killed runs with the same output, which this export removed.
    pub cleared: Vec<PathBuf>,
}

/// An export that is written and does not have its name yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Unpublished<'s> {
    folder: Staging<'s>,
    exported: Exported,
}

impl Unpublished<'_> {
    /// What publishing would give.
    #[must_use]
    pub(crate) fn exported(&self) -> &Exported {
        &self.exported
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// The output exists by now, or the system refuses; nothing is left then.
    pub(crate) fn publish(self) -> Result<Exported, ExportError> {
        self.folder.publish()?;
        Ok(self.exported)
    }

    /// Removes it, and returns what publishing would have given.
    #[must_use]
    pub(crate) fn discard(self) -> Exported {
        self.exported
    }
}

/// Carries a plan out and writes the result to `output`, which must not exist.
///
/// Calls `progress` with the bytes written so far and in total. A request to `stop` ends the export soon; nothing is left
/// behind.
///
/// # Errors
/// Any failure; nothing is left at `output` or beside it.
pub fn export(
    plan: &Plan,
    output: &Path,
    progress: &mut (dyn FnMut(u64, u64) + Send),
    stop: &Stop,
) -> Result<Exported, ExportError> {
    write(plan, output, progress, stop)?.publish()
}

/// Writes the export without giving it its name, so that the caller can look at the report first.
///
/// # Errors
/// Those of [`export`].
pub(crate) fn write<'s>(
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
        .write_shards(plan, &mut executor, head.as_ref(), &layouts)
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
