//! The plan for people: one paragraph an operation, names folded by layer, its diagnostics below it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::fold::{fold, runs};
use super::{Action, Edit, Plan, Region, Step};
use crate::checkpoint::{Dtype, Key, Origin, Packing, packing};
use crate::diagnostic::{BOLD, DIM, Diagnostic, Look, Severity, columns, rows, wrap};
use crate::surgery::{Granularity, Kind, Method, Operation, Spanned, SurgeryFile};

/// Where the paragraph of an operation stands.
const BODY: usize = 7;
/// The place of an operation stands at the right edge, but not too far from what it belongs to.
const PLACE_EDGE: usize = 80;
/// Without `all`, longer paragraphs are cut.
const MOST_ROWS: usize = 24;

/// The plan as text. `all` lists every tensor; else names are folded and long lists cut. `file` is the file that the
/// plan was made from.
#[must_use]
pub fn explain(plan: &Plan, file: &SurgeryFile, look: Look, all: bool) -> String {
    let mut out = header(plan, file, look);
    let (mine, general) = by_operation(plan.diagnostics(), &file.operations);
    for (place, step) in plan.steps().iter().enumerate() {
        let Some(operation) = file.operations.iter().find(|operation| operation.index == step.index) else {
            continue;
        };
        out.push('\n');
        out.push_str(&title(file, step, operation, look));
        out.push_str(&rows(&edits(plan, step, look, all), BODY, if all { look.for_lists() } else { look }));
        if step.skipped > 0 {
            let text = format!("{} of {} matched keys are left alone", step.skipped, step.matched);
            for line in wrap(&text, look.width.saturating_sub(BODY)) {
                let _ = writeln!(out, "{:BODY$}{}", "", look.paint(DIM, &line));
            }
        }
        for diagnostic in mine.get(&place).into_iter().flatten() {
            remark(&mut out, diagnostic, BODY, look);
        }
    }
    if !general.is_empty() {
        out.push('\n');
    }
    for diagnostic in general {
        remark(&mut out, diagnostic, 2, look);
    }
    out.push('\n');
    out.push_str(&summary(plan, look));
    out
}

fn header(plan: &Plan, file: &SurgeryFile, look: Look) -> String {
    let weights = &plan.base().weights;
    let tensors = stored(plan);
    let size: u64 = (weights.index.entries().iter())
        .filter_map(|(_, info)| match &info.origin {
            Origin::Stored { range, .. } => Some(range.end - range.start),
            Origin::Tied(_) => None,
        })
        .sum();
    let name = |path: &std::path::Path| {
        let named = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let real = || path.canonicalize().ok()?.file_name().map(|name| name.to_string_lossy().into_owned());
        named.or_else(real).unwrap_or_else(|| path.display().to_string())
    };
    let (file, model) = (name(&file.source.path), name(&plan.base().dir));
    let size = format!("({}, {})", counted(tensors, "tensor"), bytes(size));
    let plain = format!("{file}  on  {model}  {size}");
    if columns(&plain) <= look.width {
        return format!(
            "{}  on  {}  {}\n",
            look.paint(BOLD, &file),
            look.paint(BOLD, &model),
            look.paint(DIM, &size)
        );
    }
    wrap(&plain, look.width).iter().fold(String::new(), |out, line| out + &look.paint(BOLD, line) + "\n")
}

/// Tensors that stand in a file (a restored head does not).
fn stored(plan: &Plan) -> usize {
    let entries = plan.base().weights.index.entries();
    entries.iter().filter(|(_, info)| matches!(info.origin, Origin::Stored { .. })).count()
}

/// `  1  scale × 0.95                 surgery.yaml:3`
fn title(file: &SurgeryFile, step: &Step, operation: &Operation, look: Look) -> String {
    let number = format!("{:>3}  ", step.index + 1);
    let mut text = what(file, operation, look);
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
fn what(file: &SurgeryFile, operation: &Operation, look: Look) -> String {
    let times = look.either("×", "x");
    let donor = |path: &std::path::Path| {
        let path = path.strip_prefix(&file.dir).unwrap_or(path);
        path.strip_prefix(".").unwrap_or(path).display().to_string()
    };
    match &operation.kind {
        Kind::Scale { factor } => format!("scale {times} {}", factor.value),
        Kind::Add { source, alpha } => format!("add {} {times} {}", alpha.value, donor(&source.value)),
        Kind::Prune { granularity, ids } => {
            let mut numbers: Vec<u64> = ids.value.iter().map(|id| id.value).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let unit = match granularity.value {
                Granularity::Layer => "layer",
                Granularity::AttentionHead => "head",
                Granularity::MlpChannel => "channel",
            };
            let plural = if numbers.len() == 1 { "" } else { "s" };
            format!("prune {unit}{plural} {}", runs(&numbers, ", ", look))
        }
        Kind::Replace { source, source_key } => {
            format!("replace by {}: {}", donor(&source.value), source_key.value.as_str())
        }
        Kind::Interpolate { source_a, source_b, ratio, method } => format!(
            "interpolate {} {} {} at {}, {}",
            donor(&source_a.value),
            look.either("→", "->"),
            donor(&source_b.value),
            ratio.value,
            match method.value {
                Method::Lerp => "lerp",
                Method::Slerp => "slerp",
            }
        ),
    }
}

/// What is edited, told of each name: two names with the same to say can be folded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    /// `bf16 [2560]`, or `4 bits, groups of 64` of an affine set.
    form: String,
    /// Which members of an affine set; empty for a tensor.
    members: Vec<&'static str>,
    /// `rows 0–127`; empty when it is the whole tensor.
    region: String,
    /// The module whose bytes a restored head shares.
    tied_to: Option<String>,
}

fn edits(plan: &Plan, step: &Step, look: Look, all: bool) -> Vec<(String, String)> {
    if all {
        return step.edits.iter().map(|edit| one_edit(plan, edit, look)).collect();
    }
    let subjects = subjects(plan, &step.edits, look);
    let folded = fold(subjects.iter().map(|(name, subject)| (name.as_str(), subject.clone())));
    let more = folded.len().saturating_sub(MOST_ROWS);
    let mut rows: Vec<(String, String)> = (folded.iter().take(folded.len() - more))
        .map(|fold| (fold.name(look), fold.detail.told(fold.count())))
        .collect();
    if more > 0 {
        rows.push((
            format!("{} {more} more lines (--all lists every tensor)", look.either("…", "...")),
            String::new(),
        ));
    }
    rows
}

impl Subject {
    fn told(&self, count: usize) -> String {
        let Self { form, members, region, tied_to } = self;
        let tie = tied_to.as_ref().map_or_else(String::new, |to| format!(" (tied to {to})"));
        let Some((last, others)) = members.split_last() else {
            let colon = if region.is_empty() { "" } else { ": " };
            return format!("{}, {form}{colon}{region}{tie}", counted(count, "tensor"));
        };
        let of = if region.is_empty() { String::new() } else { format!("{region} of ") };
        format!("{} ({form}): {of}{} and {last}{tie}", counted(count, "affine set"), others.join(", "))
    }
}

/// The edits of a step, the members of an affine set drawn together where the same happens to them.
fn subjects(plan: &Plan, edits: &[Edit], look: Look) -> Vec<(String, Subject)> {
    let entries = plan.base().weights.index.entries();
    let mut places = HashMap::new();
    let mut modules: Vec<(&str, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        let stem = entries[edit.target].0.stem();
        let place = *places.entry(stem).or_insert_with(|| {
            modules.push((stem, Vec::new()));
            modules.len() - 1
        });
        modules[place].1.push(edit);
    }
    let mut subjects = Vec::new();
    for (stem, edits) in modules {
        if let Some(subject) = affine(plan, &edits, look) {
            subjects.push((stem.to_owned(), subject));
            continue;
        }
        subjects.extend(edits.iter().map(|edit| {
            let (key, info) = &entries[edit.target];
            let (form, region) = (form(info.dtype, &info.shape), region(&edit.action, look));
            let tied_to = tied_to(&info.origin).map(Key::to_string);
            (key.to_string(), Subject { form, members: Vec::new(), region, tied_to })
        }));
    }
    subjects
}

fn tied_to(origin: &Origin) -> Option<&Key> {
    match origin {
        Origin::Stored { .. } => None,
        Origin::Tied(to) => Some(to),
    }
}

/// The edits of one module as one thing, if they are of an affine set and do the same to several of its members.
fn affine(plan: &Plan, edits: &[&Edit], look: Look) -> Option<Subject> {
    let (first, others) = edits.split_first()?;
    let region = region(&first.action, look);
    if others.is_empty() || others.iter().any(|edit| self::region(&edit.action, look) != region) {
        return None;
    }
    let base = plan.base();
    let Packing::Affine(set) = packing(&base.weights.index, &base.config, first.target) else { return None };
    let members: Vec<&'static str> = [(set.codes, "codes"), (set.scales, "scales"), (set.biases, "biases")]
        .into_iter()
        .filter(|(member, _)| edits.iter().any(|edit| edit.target == *member))
        .map(|(_, name)| name)
        .collect();
    // A linear bias beside the set is no member of it: then every tensor is told by itself.
    if members.len() != edits.len() {
        return None;
    }
    let form = set.format.map_or_else(
        || "bits unknown".to_owned(),
        |format| format!("{} bits, groups of {}", format.bits, format.group_size),
    );
    let (_, info) = &base.weights.index.entries()[first.target];
    let tied_to = tied_to(&info.origin).map(|key| key.stem().to_owned());
    Some(Subject { form, members, region, tied_to })
}

/// Every tensor by itself: dtype, shape and action.
fn one_edit(plan: &Plan, edit: &Edit, look: Look) -> (String, String) {
    let (key, info) = &plan.base().weights.index.entries()[edit.target];
    let donor = |from: &super::TensorRef| format!("{} of {}", from.key, plan.donors()[from.donor].written);
    let times = look.either("×", "x");
    let action = match &edit.action {
        Action::Scale { factor } => format!("{times} {factor}"),
        Action::Add { donor: from, alpha } => format!("+ {alpha} {times} {}", donor(from)),
        Action::Zero { region: Region::Whole } => "zero".to_owned(),
        Action::Zero { .. } => format!("zero {}", region(&edit.action, look)),
        Action::Replace { donor: from } => format!("replaced by {}", donor(from)),
        Action::Blend { a, b, ratio, .. } => {
            format!("{} {} {} at {ratio}", donor(a), look.either("→", "->"), donor(b))
        }
    };
    (key.to_string(), format!("{}  {action}", form(info.dtype, &info.shape)))
}

/// `bf16 [2560, 64]`
fn form(dtype: Dtype, shape: &[usize]) -> String {
    format!("{} {shape:?}", dtype.to_string().to_lowercase())
}

/// `rows 0–127, 256–383`, or nothing for a whole tensor.
fn region(action: &Action, look: Look) -> String {
    let Action::Zero { region: Region::Slices { axis, ranges } } = action else { return String::new() };
    let numbers = ranges.iter().map(|range| match range.end - range.start {
        1 => range.start.to_string(),
        _ => format!("{}{}{}", range.start, look.either("–", "-"), range.end - 1),
    });
    let axis = if *axis == 0 { "row" } else { "column" };
    let plural = if ranges.iter().map(Range::len).sum::<usize>() == 1 { "" } else { "s" };
    format!("{axis}{plural} {}", numbers.collect::<Vec<_>>().join(", "))
}

/// One diagnostic in a line: the full one, with its place and help, is the renderer's.
fn remark(out: &mut String, diagnostic: &Diagnostic, indent: usize, look: Look) {
    let (word, colour) = match diagnostic.severity() {
        Severity::Advice => ("advice", "36"),
        Severity::Warning => ("warning", "33"),
        Severity::Error => ("error", "31"),
    };
    let text = format!("{} ({})", diagnostic.message, diagnostic.code.name());
    let hang = word.len() + 2;
    for (at, line) in wrap(&text, look.width.saturating_sub(indent + hang)).iter().enumerate() {
        let lead = if at == 0 { look.paint(colour, word) + "  " } else { " ".repeat(hang) };
        let _ = writeln!(out, "{:indent$}{lead}{line}", "");
    }
}

/// Diagnostics by the place of the operation they speak of; the second list is of those that speak of none.
fn by_operation<'d>(
    diagnostics: &'d [Diagnostic],
    operations: &[Operation],
) -> (HashMap<usize, Vec<&'d Diagnostic>>, Vec<&'d Diagnostic>) {
    let starts: Vec<usize> = operations.iter().map(start).collect();
    let (mut mine, mut general) = (HashMap::<_, Vec<_>>::new(), Vec::new());
    for diagnostic in diagnostics {
        let owner = diagnostic
            .labels
            .first()
            .and_then(|label| starts.iter().rposition(|&start| start <= label.span.start));
        match owner {
            Some(place) => mine.entry(place).or_default().push(diagnostic),
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
    let mut pieces =
        vec![format!("{} of {} change", summary.tensors_edited, counted(stored(plan), "tensor"))];
    if summary.tensors_edited > 0 {
        pieces.push(match (summary.base_bytes, summary.donor_bytes) {
            (0, 0) => "reads nothing".to_owned(),
            (base, 0) => format!("reads {}", bytes(base)),
            (0, donors) => format!("reads {} from donors", bytes(donors)),
            (base, donors) => format!("reads {} + {} from donors", bytes(base), bytes(donors)),
        });
        pieces.push(format!("at most {} extra at a time", bytes(summary.peak_extra_bytes)));
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

/// `1 tensor`, `2 tensors`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A size in decimal units, three digits or so: `184 kB`, `2.26 GB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    let (mut unit, mut size) = ("B", count as f64);
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if size < 999.5 {
            break;
        }
        (unit, size) = (larger, size / 1000.0);
    }
    match unit {
        "B" => format!("{count} B"),
        _ if size < 9.995 => format!("{} {unit}", trimmed(&format!("{size:.2}"))),
        _ if size < 99.95 => format!("{} {unit}", trimmed(&format!("{size:.1}"))),
        _ => format!("{size:.0} {unit}"),
    }
}

fn trimmed(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}
