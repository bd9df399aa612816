//! Figures against those of one element at a time.

use super::*;
use crate::execute::kernel::counters::Counters;

/// What each step does, counted one element at a time.
fn tallies(recipe: &Recipe, base: &[u8], inputs: &[Vec<u8>]) -> Vec<Counters> {
    let (dtype, width) = (recipe.dtype, recipe.width());
    let mut tallies = vec![Counters::default(); recipe.steps.len()];
    for i in 0..recipe.elements() {
        let input = |k: usize| Value::read(dtype, recipe.inputs[k], &inputs[k], i);
        let raw = |bytes: &[u8]| bytes[i * width..][..width].to_vec();
        let (mut value, mut bits) = match recipe.start {
            Start::InPlace => (Value::read(dtype, dtype, base, i), raw(base)),
            Start::Zeros => (Value::of(dtype, 0.0), vec![0; width]),
            Start::From(k) if recipe.inputs[k] == dtype && recipe.a_step_computes() => {
                (input(k), raw(&inputs[k]))
            }
            Start::From(k) => (input(k), input(k).store(dtype)),
            Start::Mix { a, b, weights } => {
                let of = |weight| Value::of(dtype, weight);
                let value = of(weights.0).times(input(a)).plus(of(weights.1).times(input(b)));
                (value, value.store(dtype))
            }
        };
        for (step, tally) in recipe.steps.iter().zip(&mut tallies) {
            let (before, before_bits) = (value, bits.clone());
            let mut meant = None;
            match step {
                Step::Scale(factor) => {
                    let factor = Value::of(dtype, *factor);
                    value = value.times(factor);
                    bits = value.store(dtype);
                    // By 1 exactly what changes is meant to: NaNs.
                    let changes = !factor.plus(Value::of(dtype, -1.0)).is_zero();
                    meant = changes.then(|| !before.is_zero());
                }
                Step::Add { input: k, alpha } => {
                    let delta = Value::of(dtype, *alpha).times(input(*k));
                    value = value.plus(delta);
                    bits = value.store(dtype);
                    meant = Some(!delta.is_zero());
                }
                Step::Zero(region) if holds(region, &recipe.shape, i) => {
                    value = Value::of(dtype, 0.0);
                    bits.fill(0);
                }
                Step::Zero(_) => {}
            }
            let changed = bits != before_bits;
            let meant = meant.unwrap_or(changed);
            tally.changed += u64::from(changed);
            tally.deltas += u64::from(meant);
            tally.lost += u64::from(meant && !changed);
            tally.change_square += (value.to_f64() - before.to_f64()).powi(2);
            tally.before_square += before.to_f64().powi(2);
        }
    }
    tallies
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_step_is_counted_as_one_element_at_a_time_is(recipe in recipe(), seed in any::<u64>()) {
        let n = recipe.elements();
        let base = bytes(recipe.dtype, n, seed);
        let inputs: Vec<Vec<u8>> =
            (1u64..).zip(&recipe.inputs).map(|(k, dtype)| bytes(*dtype, n, seed.wrapping_mul(2 * k + 1))).collect();
        // In place, what computes begins with an input.
        let (mut recipe, mut inputs) = (recipe, inputs);
        if recipe.computes() && recipe.start == Start::InPlace {
            recipe.start = Start::From(inputs.len());
            recipe.inputs.push(recipe.dtype);
            inputs.push(base.clone());
        }
        let got = run_all(&recipe, &base, &inputs, true).1.steps;
        let close = |got: f64, want: f64, all: f64| {
            !want.is_finite() || (got - want).abs() <= 1e-4 * want + 1e-7 * all
        };
        for (got, want) in got.iter().zip(tallies(&recipe, &base, &inputs)) {
            let counts = |tally: &Counters| (tally.changed, tally.deltas, tally.lost);
            prop_assert_eq!(counts(got), counts(&want), "{:?}", recipe);
            prop_assert!(close(got.before_square, want.before_square, 0.0), "{got:?} {want:?} {recipe:?}");
            prop_assert!(
                close(got.change_square, want.change_square, want.before_square), "{got:?} {want:?} {recipe:?}"
            );
        }
    }
}

/// What one step, `change` of base and donor, does to elements, counted one by one: how many change, are meant to, and
/// are meant to and do not; Σ change² and Σ before².
fn counted(
    dtype: Dtype,
    [base, donor, result]: [&[u8]; 3],
    change: impl Fn(f64, f64) -> (f64, bool),
) -> (u64, u64, u64, f64, f64) {
    let width = dtype.bitsize() / 8;
    let value = |bytes: &[u8], i| Value::read(dtype, dtype, bytes, i).to_f64();
    let mut counts = (0, 0, 0, 0.0, 0.0);
    for i in 0..base.len() / width {
        let (before, (moved, meant)) = (value(base, i), change(value(base, i), value(donor, i)));
        let changed = base[i * width..][..width] != result[i * width..][..width];
        counts.0 += u64::from(changed);
        counts.1 += u64::from(meant);
        counts.2 += u64::from(meant && !changed);
        counts.3 += moved * moved;
        counts.4 += before * before;
    }
    counts
}

/// What rounding does to elements that are scaled: how many normal numbers become none, Σ error², Σ exact².
fn rounding(dtype: Dtype, base: &[u8], result: &[u8], factor: f64) -> (u64, f64, f64) {
    let least = if dtype == Dtype::F16 { 6.103_515_625e-5 } else { f64::from(f32::MIN_POSITIVE) };
    let (mut fallen, mut error, mut square) = (0, 0.0, 0.0);
    for i in 0..base.len() / (dtype.bitsize() / 8) {
        let before = Value::read(dtype, dtype, base, i);
        let exact = before.times(Value::of(dtype, factor)).to_f64();
        let after = Value::read(dtype, dtype, result, i).to_f64();
        fallen += u64::from(before.to_f64().abs() >= least && after.abs() < least);
        error += (after - exact).powi(2);
        square += exact.powi(2);
    }
    (fallen, error, square)
}

proptest! {
    #[test]
    fn one_step_is_counted_as_one_element_at_a_time_is(
        dtype in float(),
        seed in any::<u64>(),
        number in prop_oneof![select(vec![1e-30, 1e-9, 1e-6, 1e-3, -1.0, 1.5]), -3.0..3.0f64],
        adds in any::<bool>(),
        n in select(vec![1024, 5000]),
    ) {
        let (base, donor) = (bytes(dtype, n, seed << 1), bytes(dtype, n, !seed << 1));
        let step = if adds { Step::Add { input: 0, alpha: number } } else { Step::Scale(number) };
        let mut recipe = plain(dtype, &[n], vec![step]);
        recipe.inputs.push(dtype);
        let (result, outcome) = run_all(&recipe, &base, std::slice::from_ref(&donor), true);
        let entered = Value::of(dtype, number).to_f64();
        let vanishes = |x: f64| Value::of(dtype, x).times(Value::of(dtype, number)).is_zero();
        let counts = counted(dtype, [&base, &donor, &result], |before, donor| {
            if adds {
                (entered * donor, !vanishes(donor))
            } else {
                ((entered - 1.0) * before, before != 0.0)
            }
        });
        let close = |got: f64, want: f64, all: f64| (got - want).abs() <= 1e-5 * want + 1e-9 * all;
        let tally = outcome.steps[0];
        prop_assert_eq!((tally.changed, tally.deltas, tally.lost), (counts.0, counts.1, counts.2));
        if !adds {
            recipe.member = Member::Scales;
            let member = run_all(&recipe, &base, &[donor], true).1.steps[0];
            let (fallen, error, exact) = rounding(dtype, &base, &result, number);
            prop_assert_eq!((member.changed, member.scales, member.underflowed), (counts.0, n as u64, fallen));
            prop_assert!(close(member.error_square, error, 0.0), "{member:?} {error}");
            prop_assert!(close(member.exact_square, exact, 0.0), "{member:?} {exact}");
        }
        prop_assert!(close(tally.change_square, counts.3, counts.4), "{tally:?} {counts:?}");
        prop_assert!(close(tally.before_square, counts.4, 0.0), "{tally:?} {counts:?}");
    }
}

#[test]
fn a_delta_below_half_a_unit_is_counted_as_lost() {
    let base: Vec<u8> = [1.0f32, 1.0, 1.0].iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect();
    let delta: Vec<u8> = [0.0f32, 0.001, 0.5].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut recipe = plain(Dtype::BF16, &[3], vec![Step::Add { input: 0, alpha: 1.0 }]);
    recipe.inputs.push(Dtype::F32);
    let tally = run_all(&recipe, &base, &[delta], true).1.steps[0];
    assert_eq!((tally.deltas, tally.lost, tally.changed), (2, 1, 1));
    assert!((tally.change_square - 0.250_001).abs() < 1e-6, "{tally:?}");
    assert!((tally.before_square - 3.0).abs() < 1e-12, "{tally:?}");
}

#[test]
fn scales_that_become_subnormal_are_counted() {
    let base: Vec<u8> =
        [1e-3f32, 1e-4, 0.0, 1.0].iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect();
    let mut recipe = plain(Dtype::F16, &[4], vec![Step::Scale(0.01)]);
    recipe.member = Member::Scales;
    let tally = run_all(&recipe, &base, &[], true).1.steps[0];
    assert_eq!((tally.scales, tally.underflowed), (4, 2));
    assert!(tally.error_square > 0.0 && tally.error_square < 1e-6 * tally.exact_square, "{tally:?}");
}

#[test]
fn scaling_by_one_means_to_change_nothing() {
    for dtype in [Dtype::F16, Dtype::BF16, Dtype::F32] {
        let recipe = plain(dtype, &[3000], vec![Step::Scale(1.0)]);
        let tally = run_all(&recipe, &bytes(dtype, 3000, 4), &[], true).1.steps[0];
        assert_eq!((tally.changed, tally.deltas, tally.lost), (0, 0, 0));
    }
}

#[test]
fn squares_are_right_where_the_working_precision_has_none() {
    let n = 3 * STRIP;
    let stored = |dtype, number: f64| -> Vec<u8> {
        (0..n).flat_map(|_| Value::of(dtype, number).store(dtype)).collect()
    };
    for dtype in [Dtype::F16, Dtype::BF16, Dtype::F32] {
        for (base, donor) in
            [(1e-28, 1e-30), (1.0, 1e-28), (1e25, 1e24), (3e-5, 0.0), (0.0, 1e-3), (0.0, 0.0)]
        {
            for step in [Step::Scale(1.5), Step::Add { input: 0, alpha: 0.5 }] {
                let mut recipe = plain(dtype, &[n], vec![step]);
                recipe.inputs = vec![dtype; 2];
                recipe.start = Start::From(1);
                let inputs = [stored(dtype, donor), stored(dtype, base)];
                let got = run_all(&recipe, &inputs[1], &inputs, true).1.steps[0];
                let want = tallies(&recipe, &inputs[1], &inputs)[0];
                let close = |got: f64, want: f64| !want.is_finite() || (got - want).abs() <= 1e-4 * want;
                assert!(close(got.before_square, want.before_square), "{got:?} {want:?} {recipe:?}");
                assert!(close(got.change_square, want.change_square), "{got:?} {want:?} {recipe:?}");
                assert_eq!((got.deltas, got.lost), (want.deltas, want.lost), "{recipe:?}");
            }
        }
    }
}
