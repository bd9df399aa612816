//! Intermediate channels of MLPs: rows of gate and up, columns of down.

use super::ids::{Ids, nothing, range};
use super::linear::{self, Linear, Obstacle};
use super::reached::{Module, reached};
use super::slices::Slices;
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::action::Action;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation};
use crate::plan::scope::Scope;
use crate::surgery::{Granularity, Operation};

/// Names of MLP projections, and of tensors that stack experts.
const LEAVES: [&str; 11] = [
    "gate_proj",
    "up_proj",
    "down_proj",
    "gate_up_proj",
    "w1",
    "w2",
    "w3",
    "gate_up_proj_bias",
    "down_proj_bias",
    "gate_proj_bias",
    "up_proj_bias",
];

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    ids: &Ids<'_>,
    planned: &mut PlannedOperation,
) {
    let mut faults = Faults::default();
    let modules = reached(context, scope, |leaf| LEAVES.contains(&leaf), &mut faults);
    let mut bias_left: Vec<&str> = Vec::new();
    let mut widths: Vec<(&str, usize)> = Vec::new();
    let mut slices = Slices::new(ids);
    for module in &modules {
        match Mlp::find(context, module) {
            Err(obstacle) => faults.add(obstacle.code, obstacle.reason, obstacle.help, module.parent),
            Ok(None) => {}
            Ok(Some(mlp)) => {
                widths.push((module.parent, mlp.width));
                if let Err(obstacle) = mlp.prune(context, module, &mut slices, planned, &mut bias_left) {
                    faults.add(obstacle.code, obstacle.reason, obstacle.help, module.parent);
                }
            }
        }
    }
    let refused = coverage(ids, &widths, planned);
    if !faults.is_empty() {
        faults.report(planned, &operation.pattern);
        return;
    }
    if planned.edits.is_empty() && !refused {
        let help = "match MLP modules of the text model: `down_proj` with `gate_proj` and `up_proj`, or with `gate_up_proj`, \
                    or `w2` with `w1` and `w3`";
        return nothing(operation, Granularity::MlpChannel, help, planned);
    }
    if !bias_left.is_empty() && !refused {
        let message = format!("the bias of the pruned channels is not zeroed: {}", words::names(&bias_left));
        let diagnostic = Diagnostic::new(Code::BiasLeft, message).help(
            "match the bias too, with a pattern that ends in `.*`; otherwise the channel is constant, not 0",
        );
        planned.report(operation.pattern.label_at_use(diagnostic, ""));
    }
}

/// An MLP whose layout is known.
struct Mlp {
    /// Gate and up, or both in one matrix, with the offsets of their rows.
    inputs: Vec<(&'static str, Linear, Vec<usize>)>,
    down: (&'static str, Linear),
    width: usize,
}

impl Mlp {
    /// The MLP under a parent; `None` if the names are no MLP's.
    fn find(context: &Context<'_>, module: &Module<'_>) -> Result<Option<Self>, Obstacle> {
        if module.leaves().any(|leaf| module.position(context, leaf, "").is_some()) {
            return Err(linear::not_a_matrix(3));
        }
        let find = |leaf: &str| linear::find(context, module, leaf);
        let (gate, up, down) = if let Some(down) = find("down_proj")? {
            (("gate_proj", find("gate_proj")?), ("up_proj", find("up_proj")?), ("down_proj", down))
        } else if let (Some(down), gate @ Some(_), up @ Some(_)) = (find("w2")?, find("w1")?, find("w3")?) {
            (("w1", gate), ("w3", up), ("w2", down))
        } else {
            return Ok(None);
        };
        let mut inputs: Vec<_> = [gate, up]
            .into_iter()
            .filter_map(|(leaf, found)| found.map(|linear| (leaf, linear, vec![0])))
            .collect();
        let family = context.config().text_model_type();
        let mut width = inputs.first().map(|(_, linear, _)| linear.rows);
        if let Some(fused) = find("gate_up_proj")? {
            if !context.config().family().has_fused_projections {
                let reason = format!("the row order of `gate_up_proj` in `{family}` is unknown");
                return Err(Obstacle::layout(reason, "prune whole layers instead"));
            }
            width = Some(fused.rows / 2);
            inputs.push(("gate_up_proj", fused, vec![0, width.unwrap_or_default()]));
        }
        let width = width.unwrap_or(down.1.stored_columns);
        let fits = inputs.iter().all(|(_, linear, halves)| linear.rows == width * halves.len());
        if !fits || (down.1.set().is_none() && down.1.stored_columns != width) {
            let reason = "the rows of gate and up and the columns of down do not agree";
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        }
        Ok(Some(Self { inputs, down, width }))
    }

    fn prune<'a>(
        &self,
        context: &Context<'a>,
        module: &Module<'_>,
        slices: &mut Slices,
        planned: &mut PlannedOperation,
        bias_left: &mut Vec<&'a str>,
    ) -> Result<(), Obstacle> {
        for (leaf, linear, halves) in &self.inputs {
            let touch = module.touch(leaf);
            planned.acts_on(touch.keys());
            let rows = slices.of(0, halves, self.width, 1);
            if touch.weight > 0 {
                linear.zero(&rows, planned);
            }
            match linear.bias {
                Some(bias) if touch.bias > 0 => planned.edit(bias, Action::Zero { region: rows }),
                Some(bias) if touch.weight > 0 => bias_left.push(context.key(bias)),
                _ => {}
            }
        }
        let (leaf, down) = &self.down;
        if module.touch(leaf).weight == 0 {
            return Ok(());
        }
        if down.set().is_some() {
            return Err(Obstacle::new(
                Code::QuantizedDownProj,
                format!("one channel is narrower than a group of a quantized `{leaf}`"),
                "match gate and up only: zeroing those already silences the channel",
            ));
        }
        planned.acts_on(module.touch(leaf).weight);
        down.zero(&slices.of(1, &[0], self.width, 1), planned);
        Ok(())
    }
}

/// Reports channels that some module does not have; returns whether there were some.
fn coverage(ids: &Ids<'_>, widths: &[(&str, usize)], planned: &mut PlannedOperation) -> bool {
    let Some(&(parent, width)) = widths.iter().min_by_key(|(_, width)| width) else { return false };
    for id in ids.iter().filter(|id| id.value >= width as u64) {
        let message = format!("`{parent}` has no channel {} ({})", id.value, range("channels", width as u64));
        let help = match width {
            0 => "exclude the module".to_owned(),
            width => format!("use ids from 0 to {}; every matched module must have them", width - 1),
        };
        planned.report(id.label_at_use(Diagnostic::new(Code::ChannelOutOfRange, message).help(help), ""));
    }
    ids.iter().any(|id| id.value >= width as u64)
}
