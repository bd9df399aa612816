//! [`RopeSpec`]: the rotary positions that a configuration asks for, and their table of periods.
//!
//! Every scaling to longer contexts is a table of periods (reciprocals of the angular frequencies), computed in f64,
//! and an attention factor that queries and keys are multiplied by. A period is the reciprocal of what Hugging Face calls
//! `inv_freq`.

use std::f64::consts::TAU;

/// The rotary positions that a configuration asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RopeSpec {
    /// Width of a head.
    pub head_dim: usize,
    /// The number of dimensions of a head, from its first, that are rotated; even.
    pub dims: usize,
    /// Base of the geometric series of periods.
    pub theta: f64,
    /// How positions are stretched to longer contexts.
    pub scaling: Scaling,
}

/// How rotary positions are stretched to longer contexts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scaling {
    /// Positions are not stretched.
    Default,
    /// All positions divided by a factor (<https://arxiv.org/abs/2306.15595>).
    Linear {
        /// At least 1.
        factor: f64,
    },
    /// Long periods stretched, short ones kept, those between interpolated (<https://arxiv.org/abs/2407.21783>).
    Llama3 {
        /// The factor that long periods are stretched by.
        factor: f64,
        /// Periods beyond `original_context / low` count as long.
        low: f64,
        /// Periods below `original_context / high` count as short.
        high: f64,
        /// The context of the model's first training, in positions.
        original_context: f64,
    },
    /// The same idea with a ramp over the dimensions (<https://arxiv.org/abs/2309.00071>).
    Yarn {
        /// The factor that long periods are stretched by.
        factor: f64,
        /// Dimensions that turn more often than this in `original_context` keep their period.
        fast: f64,
        /// Dimensions that turn less often than this are fully stretched.
        slow: f64,
        /// The context of the model's first training, in positions.
        original_context: f64,
        /// Whether the ramp begins and ends at whole dimensions.
        truncate: bool,
        /// The factor that queries and keys are multiplied by.
        attention_factor: f64,
    },
    /// A factor for each period, found by search; one set for sequences up to `original_context`, another for longer
    /// ones (<https://arxiv.org/abs/2402.13753>).
    Long {
        /// `dims / 2` factors for sequences within `original_context`.
        short: Vec<f64>,
        /// `dims / 2` factors for longer sequences.
        long: Vec<f64>,
        /// The context of the model's first training, in positions.
        original_context: usize,
        /// The factor that queries and keys are multiplied by.
        attention_factor: f64,
    },
}

impl RopeSpec {
    /// One period for each pair of dimensions: the position at which its angle is one radian. For `Long`, those of
    /// sequences within the original context.
    #[must_use]
    pub(crate) fn periods(&self) -> Vec<f64> {
        match &self.scaling {
            Scaling::Default => self.plain().collect(),
            Scaling::Linear { factor } => self.plain().map(|period| period * factor).collect(),
            Scaling::Llama3 { factor, low, high, original_context } => {
                let stretch = |period: f64| {
                    let turns = original_context / (TAU * period);
                    if turns < *low {
                        period * factor
                    } else if turns > *high {
                        period
                    } else {
                        let smooth = (turns - low) / (high - low);
                        period / ((1.0 - smooth) / factor + smooth)
                    }
                };
                self.plain().map(stretch).collect()
            }
            Scaling::Yarn { factor, fast, slow, original_context, truncate, .. } => {
                let (from, to) = self.ramp(*fast, *slow, *original_context, *truncate);
                let stretch = |(pair, period): (u32, f64)| {
                    let stretched = ((f64::from(pair) - from) / (to - from)).clamp(0.0, 1.0);
                    period / (stretched / factor + (1.0 - stretched))
                };
                (0..).zip(self.plain()).map(stretch).collect()
            }
            Scaling::Long { short, .. } => self.stretched(short),
        }
    }

    /// The original context, in positions, and the periods of longer sequences, where these have their own.
    #[must_use]
    pub(crate) fn long_periods(&self) -> Option<(usize, Vec<f64>)> {
        match &self.scaling {
            Scaling::Long { long, original_context, .. } => Some((*original_context, self.stretched(long))),
            _ => None,
        }
    }

    /// The factor that the rotated dimensions of queries and keys are multiplied by.
    #[must_use]
    pub(crate) fn attention_factor(&self) -> f64 {
        match &self.scaling {
            Scaling::Yarn { attention_factor, .. } | Scaling::Long { attention_factor, .. } => {
                *attention_factor
            }
            _ => 1.0,
        }
    }

    fn plain(&self) -> impl Iterator<Item = f64> {
        let (dims, theta) = (self.dims, self.theta);
        #[expect(clippy::cast_precision_loss, reason = "dimensions are small")]
        let period = move |pair| theta.powf((2 * pair) as f64 / dims as f64);
        (0..dims / 2).map(period)
    }

    fn stretched(&self, factors: &[f64]) -> Vec<f64> {
        self.plain().zip(factors).map(|(period, factor)| period * factor).collect()
    }

    /// The pairs between which periods go from unchanged to fully stretched.
    fn ramp(&self, fast: f64, slow: f64, original_context: f64, truncate: bool) -> (f64, f64) {
        #[expect(clippy::cast_precision_loss, reason = "dimensions are small")]
        let dims = self.dims as f64;
        // The (fractional) pair that makes this many turns in the original context.
        let pair = |turns: f64| dims * (original_context / (turns * TAU)).ln() / (2.0 * self.theta.ln());
        let (mut from, mut to) = (pair(fast), pair(slow));
        if truncate {
            (from, to) = (from.floor(), to.ceil());
        }
        (from, to) = (from.max(0.0), to.min(dims - 1.0));
        // An empty ramp would be a division by 0.
        if (to - from).abs() < f64::EPSILON { (from, from + 0.001) } else { (from, to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scaling: Scaling, pair: usize, wanted: f64) {
        let spec = RopeSpec { head_dim: 8, dims: 8, theta: 10_000.0, scaling };
        let found = spec.periods()[pair];
        assert!((found / wanted - 1.0).abs() < 1e-12, "{found}, not {wanted}");
    }

    #[test]
    fn periods_are_a_geometric_series() {
        for (pair, wanted) in [1.0, 10.0, 100.0, 1000.0].into_iter().enumerate() {
            check(Scaling::Default, pair, wanted);
            check(Scaling::Linear { factor: 4.0 }, pair, wanted * 4.0);
        }
    }

    #[test]
    fn llama3_stretches_long_periods_keeps_short_ones_and_blends_between() {
        let scaling = || Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 1024.0 };
        // 1024 positions make 163, 16.3, 1.63 and 0.163 turns.
        check(scaling(), 0, 1.0);
        check(scaling(), 1, 10.0);
        let smooth = (1024.0 / (TAU * 100.0) - 1.0) / 3.0;
        check(scaling(), 2, 100.0 / ((1.0 - smooth) / 8.0 + smooth));
        check(scaling(), 3, 8000.0);
    }

    #[test]
    fn yarn_goes_from_kept_to_stretched_along_the_dimensions() {
        // 1024 positions make 32 turns at pair 0.7 and 1 turn at pair 2.2: a ramp from 0 to 3.
        let scaling = || Scaling::Yarn {
            factor: 4.0,
            fast: 32.0,
            slow: 1.0,
            original_context: 1024.0,
            truncate: true,
            attention_factor: 1.0,
        };
        check(scaling(), 0, 1.0);
        check(scaling(), 1, 10.0 / (1.0 / 12.0 + 2.0 / 3.0));
        check(scaling(), 2, 100.0 / (2.0 / 12.0 + 1.0 / 3.0));
        check(scaling(), 3, 4000.0);
    }

    #[test]
    fn longrope_has_two_sets_of_periods() {
        let scaling = Scaling::Long {
            short: vec![1.0, 2.0],
            long: vec![3.0, 4.0],
            original_context: 64,
            attention_factor: 1.1,
        };
        let spec = RopeSpec { head_dim: 8, dims: 4, theta: 10_000.0, scaling };
        assert_eq!(spec.periods(), [1.0, 200.0]);
        assert_eq!(spec.long_periods(), Some((64, vec![3.0, 400.0])));
    }
}
