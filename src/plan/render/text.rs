//! A plan as text: one paragraph per operation, names folded by layer, its diagnostics below it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use super::subject::{one_edit, subjects};
use crate::checkpoint::Origin;
use crate::diagnostic::fold::{fold, runs};
use crate::diagnostic::words::{count, parameter, plural};
use crate::diagnostic::{BOLD, DIM, Diagnostic, Look, Severity, bytes, columns, rows, wrap};
use crate::plan::{Edit, Plan, Step};
use crate::surgery::{Granularity, Kind, Operation, Spanned, SurgeryFile};

/// Indentation of an operation's paragraph.
const BODY: usize = 7;
/// Column at which an operation's place in the file ends, on wide terminals.
const PLACE_EDGE: usize = 80;
/// Maximum number of rows of a paragraph, unless `all` is asked for.
const MAX_ROWS: usize = 24;

/// Number of earlier paragraphs that are compared with an operation's edits, to reuse the text of equal ones.
const REUSED_PARAGRAPHS: usize = 16;

/// How much of a plan is shown.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    /// List every tensor; otherwise names are folded and long lists cut.
    pub all: bool,
    /// Show warnings below their operations, as notes are.
    pub warnings: bool,
}

/// The plan as text. `file` is the file that the plan was made from.
#[must_use]
pub fn explain(plan: &Plan, file: &SurgeryFile, look: Look, detail: Detail) -> String {
    let Detail { all, warnings } = detail;
    let mut out = header(plan, file, look);
    let shown = plan.diagnostics().iter().filter(|one| warnings || one.severity() == Severity::Advice);
    let (mine, general) = by_operation(shown, &file.operations);
    let mut paragraphs: Vec<(&[Edit], String)> = Vec::new();
    for (place, step) in plan.steps().iter().enumerate() {
        let found = file.operations.binary_search_by_key(&step.index.position(), |operation| operation.index);
        let Some(operation) = found.ok().and_then(|at| file.operations.get(at)) else { continue };
        out.push('\n');
        out.push_str(&title(file, step, operation, look));
        let known = paragraphs
            .iter()
            .rev()
            .take(REUSED_PARAGRAPHS)
            .find(|(edits, _)| !all && alike(edits, &step.edits));
        if let Some((_, same)) = known {
            out.push_str(same);
        } else {
            let text = rows(&edits(plan, step, look, all), BODY, look);
            out.push_str(&text);
            paragraphs.push((&step.edits, text));
        }
        if step.skipped > step.restored {
            // A restored head is not stored.
            let (skipped, matched) = (step.skipped - step.restored, step.matched - step.restored);
            let text = format!("{skipped} of {} skipped", count(matched, "matched tensor"));
            for line in wrap(&text, look.width.saturating_sub(BODY)) {
                let _ = writeln!(out, "{:BODY$}{}", "", look.paint(DIM, &line));
            }
        }
        for diagnostic in mine.get(&place).into_iter().flatten() {
            note(&mut out, diagnostic, BODY, look);
        }
    }
    if !general.is_empty() {
        out.push('\n');
    }
    for diagnostic in general {
        note(&mut out, diagnostic, 2, look);
    }
    out.push('\n');
    out.push_str(&summary(plan, look));
    out
}

fn header(plan: &Plan, file: &SurgeryFile, look: Look) -> String {
    let weights = &plan.base().weights;
    let stored = stored(plan);
    let size: u64 = (weights.index.entries().iter())
        .filter_map(|(_, info)| match &info.origin {
            Origin::Stored { range, .. } => Some(range.end - range.start),
            Origin::Tied(_) => None,
        })
        .sum();
    let (file, model) = (last_name(&file.source.path), last_name(&plan.base().dir));
    let size = format!("({}, {})", count(stored, "tensor"), bytes(size));
    let line = format!("{file}  on  {model}  {size}");
    if columns(&line) <= look.width {
        return format!(
            "{}  on  {}  {}\n",
            look.paint(BOLD, &file),
            look.paint(BOLD, &model),
            look.paint(DIM, &size)
        );
    }
    wrap(&line, look.width).iter().fold(String::new(), |out, line| out + &look.paint(BOLD, line) + "\n")
}

/// Whether a folded list is the same for both: it names tensors and regions, no numbers.
fn alike(a: &[Edit], b: &[Edit]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.target == b.target && a.action.region() == b.action.region())
}

/// A path's last name; `.` and `..` are resolved.
fn last_name(path: &Path) -> String {
    let last = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let resolved = || last(&path.canonicalize().ok()?);
    last(path).or_else(resolved).unwrap_or_else(|| path.display().to_string())
}

/// Number of tensors in files (a restored head is in none).
fn stored(plan: &Plan) -> usize {
    let entries = plan.base().weights.index.entries();
    entries.iter().filter(|(_, info)| matches!(info.origin, Origin::Stored { .. })).count()
}

/// `  1  scale × 0.95                 surgery.yaml:3`
fn title(file: &SurgeryFile, step: &Step, operation: &Operation, look: Look) -> String {
    let number = format!("{:>3}  ", step.index.position() + 1);
    let mut text = describe(file, operation, look);
    if let Some(name) = &step.name {
        let _ = write!(text, "  {} {name}", look.either("·", "-"));
    }
    let place = format!("{}:{}", file.source.path.display(), step.line);
    let (width, taken) = (columns(&number) + columns(&text), columns(&place) + 2);
    if width + taken <= look.width {
        let gap = look.width.min(PLACE_EDGE).saturating_sub(width + columns(&place)).max(2);
        return format!("{number}{}{:gap$}{}\n", look.paint(BOLD, &text), "", look.paint(DIM, &place));
    }
    let mut out = String::new();
    for (at, line) in wrap(&text, look.width.saturating_sub(BODY)).iter().enumerate() {
        let lead = if at == 0 { &number } else { "       " };
        let _ = writeln!(out, "{lead}{}", look.paint(BOLD, line));
    }
    for line in wrap(&place, look.width.saturating_sub(BODY)) {
        let _ = writeln!(out, "{:BODY$}{}", "", look.paint(DIM, &line));
    }
    out
}

/// An operation in a few words.
fn describe(file: &SurgeryFile, operation: &Operation, look: Look) -> String {
    let times = look.either("×", "x");
    let donor = |path: &Path| {
        let path = path.strip_prefix(&file.dir).unwrap_or(path);
        path.strip_prefix(".").unwrap_or(path).display().to_string()
    };
    match &operation.kind {
        Kind::Scale { factor } => format!("scale {times} {}", parameter(factor.value)),
        Kind::Add { source, alpha } => {
            format!("add {} {times} {}", parameter(alpha.value), donor(&source.value))
        }
        Kind::Prune { granularity, ids } => {
            let mut numbers: Vec<u64> = ids.value.iter().map(|id| id.value).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let unit = match granularity.value {
                Granularity::Layer => "layer",
                Granularity::AttentionHead => "head",
                Granularity::MlpChannel => "channel",
            };
            format!("prune {} {}", plural(numbers.len(), unit), runs(&numbers, ", ", look))
        }
        Kind::Replace { source, source_key } => {
            format!("replace with {}: {}", donor(&source.value), source_key.value.as_str())
        }
        Kind::Interpolate { source_a, source_b, ratio, method } => format!(
            "interpolate {} {} {} at {}, {}",
            donor(&source_a.value),
            look.either("→", "->"),
            donor(&source_b.value),
            parameter(ratio.value),
            method.value
        ),
    }
}

fn edits(plan: &Plan, step: &Step, look: Look, all: bool) -> Vec<(String, String)> {
    if all {
        return step.edits.iter().map(|edit| one_edit(plan, edit, look)).collect();
    }
    let subjects = subjects(plan, &step.edits, look);
    let folded = fold(subjects.iter().map(|(name, subject)| (name.as_str(), subject.clone())));
    let more = folded.len().saturating_sub(MAX_ROWS);
    let mut rows: Vec<(String, String)> = (folded.iter().take(folded.len() - more))
        .map(|fold| (fold.name(look), fold.detail.text(fold.count())))
        .collect();
    if more > 0 {
        rows.push((
            format!("{} {more} more lines (--all lists every tensor)", look.either("…", "...")),
            String::new(),
        ));
    }
    rows
}

/// One diagnostic in a line: the full one, with its place and help, is the renderer's.
fn note(out: &mut String, diagnostic: &Diagnostic, indent: usize, look: Look) {
    let (word, style) = (diagnostic.severity().word(), diagnostic.severity().style());
    let text = look.text(&format!("{} ({})", diagnostic.message, diagnostic.code.name()));
    let hang = word.len() + 2;
    for (at, line) in wrap(&text, look.width.saturating_sub(indent + hang)).iter().enumerate() {
        let lead = if at == 0 { look.paint(style, word) + "  " } else { " ".repeat(hang) };
        let _ = writeln!(out, "{:indent$}{lead}{line}", "");
    }
}

/// Diagnostics by the place of the operation they are about, and those that are about none.
fn by_operation<'d>(
    diagnostics: impl Iterator<Item = &'d Diagnostic>,
    operations: &[Operation],
) -> (HashMap<usize, Vec<&'d Diagnostic>>, Vec<&'d Diagnostic>) {
    // For each start, the last operation of the file that begins up to there.
    let mut starts: Vec<(usize, usize)> = operations.iter().map(start).zip(0..).collect();
    starts.sort_unstable();
    let mut last = 0;
    for (_, place) in &mut starts {
        last = last.max(*place);
        *place = last;
    }
    let (mut mine, mut general) = (HashMap::<_, Vec<_>>::new(), Vec::new());
    for diagnostic in diagnostics {
        let owner = diagnostic.labels.first().and_then(|label| {
            let before = starts.partition_point(|&(start, _)| start <= label.span.start);
            before.checked_sub(1).and_then(|at| starts.get(at))
        });
        match owner {
            Some(&(_, place)) => mine.entry(place).or_default().push(diagnostic),
            None => general.push(diagnostic),
        }
    }
    (mine, general)
}

/// Where an operation begins in the file: the first of its fields that are not written elsewhere, under an anchor.
fn start(operation: &Operation) -> usize {
    fn place<T>(field: &Spanned<T>) -> usize {
        field.alias.as_ref().unwrap_or(&field.span).start
    }
    let Operation { op, pattern, exclude, kind, .. } = operation;
    let of_kind = match kind {
        Kind::Scale { factor } => place(factor),
        Kind::Add { source, alpha } => place(source).min(place(alpha)),
        Kind::Prune { granularity, ids } => place(granularity).min(place(ids)),
        Kind::Replace { source, source_key } => place(source).min(place(source_key)),
        Kind::Interpolate { source_a, source_b, ratio, method } => {
            place(source_a).min(place(source_b)).min(place(ratio)).min(place(method))
        }
    };
    exclude.iter().map(place).fold(place(op).min(place(pattern)).min(of_kind), usize::min)
}

fn summary(plan: &Plan, look: Look) -> String {
    let summary = plan.summary();
    let edited = summary.tensors_edited;
    let verb = if edited == 1 { "changes" } else { "change" };
    let mut pieces = vec![format!("{edited} of {} {verb}", count(stored(plan), "tensor"))];
    if summary.tensors_edited > 0 {
        pieces.push(match (summary.base_bytes, summary.donor_bytes) {
            (0, 0) => "reads nothing".to_owned(),
            (base, 0) => format!("reads {}", bytes(base)),
            (0, donors) => format!("reads {} from donors", bytes(donors)),
            (base, donors) => format!("reads {} + {} from donors", bytes(base), bytes(donors)),
        });
        pieces.push(format!("peak extra memory {}", bytes(summary.peak_extra_bytes)));
    }
    let dot = look.either(" · ", ", ");
    let line = pieces.join(dot);
    let mut out = String::new();
    if columns(&line) + 2 <= look.width {
        let _ = writeln!(out, "  {line}");
    } else {
        for line in pieces.iter().flat_map(|piece| wrap(piece, look.width.saturating_sub(2))) {
            let _ = writeln!(out, "  {line}");
        }
    }
    if let Some(digest) = plan.digest() {
        let short: String = digest.trim_start_matches("sha256:").chars().take(8).collect();
        let _ = writeln!(out, "  digest {}", look.paint(DIM, &short));
    }
    out
}
