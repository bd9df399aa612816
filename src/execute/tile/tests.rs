//! Random recipes against a reference that does one element at a time.

use half::{bf16, f16};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::execute::recipe::Member;
use crate::plan::Region;
use crate::plan::cost::TILE;

/// One element in working precision, f32 for the halves and f64 for f32, as the base's dtype has it.
#[derive(Clone, Copy)]
enum Value {
    Narrow(f32),
    Wide(f64),
}

impl Value {
    #[expect(clippy::cast_possible_truncation, reason = "parameters enter in working precision")]
    fn of(base: Dtype, value: f64) -> Self {
        if base == Dtype::F32 { Self::Wide(value) } else { Self::Narrow(value as f32) }
    }

    fn read(base: Dtype, dtype: Dtype, bytes: &[u8], i: usize) -> Self {
        let value = match dtype {
            Dtype::F16 => f16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f32(),
            Dtype::BF16 => bf16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f32(),
            _ => f32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()),
        };
        if base == Dtype::F32 { Self::Wide(f64::from(value)) } else { Self::Narrow(value) }
    }

    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Narrow(x), Self::Narrow(y)) => Self::Narrow(x * y),
            (Self::Wide(x), Self::Wide(y)) => Self::Wide(x * y),
            _ => unreachable!(),
        }
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Narrow(x), Self::Narrow(y)) => Self::Narrow(x + y),
            (Self::Wide(x), Self::Wide(y)) => Self::Wide(x + y),
            _ => unreachable!(),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::Narrow(x) => x == 0.0,
            Self::Wide(x) => x == 0.0,
        }
    }

    fn is_finite(self) -> bool {
        match self {
            Self::Narrow(x) => x.is_finite(),
            Self::Wide(x) => x.is_finite(),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn store(self, base: Dtype) -> Vec<u8> {
        match (self, base) {
            (Self::Narrow(x), Dtype::F16) if x.is_nan() => 0x7e00u16.to_le_bytes().to_vec(),
            (Self::Narrow(x), Dtype::F16) => f16::from_f32(x).to_le_bytes().to_vec(),
            (Self::Narrow(x), _) if x.is_nan() => 0x7fc0u16.to_le_bytes().to_vec(),
            (Self::Narrow(x), _) => bf16::from_f32(x).to_le_bytes().to_vec(),
            (Self::Wide(x), _) if x.is_nan() => 0x7fc0_0000u32.to_le_bytes().to_vec(),
            (Self::Wide(x), _) => (x as f32).to_le_bytes().to_vec(),
        }
    }
}

/// Whether the region has an element.
fn holds(region: &Region, shape: &[usize], element: usize) -> bool {
    match region {
        Region::Whole => true,
        Region::Slices { axis, ranges } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let at = element / inner % shape[*axis];
            ranges.iter().any(|range| range.contains(&at))
        }
    }
}

/// The result's bytes, the elements that are not finite for no reason, and those that are with one.
fn reference(recipe: &Recipe, base: &[u8], inputs: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>, usize) {
    let dtype = recipe.dtype;
    let width = recipe.width();
    let computes = recipe.computes();
    let (mut result, mut broken, mut passed) = (Vec::new(), Vec::new(), 0);
    for i in 0..recipe.elements() {
        let input = |k: usize| Value::read(dtype, recipe.inputs[k], &inputs[k], i);
        let (mut value, mut sound) = match recipe.start {
            Start::InPlace => {
                let value = Value::read(dtype, dtype, base, i);
                (value, value.is_finite())
            }
            Start::Zeros => (Value::of(dtype, 0.0), true),
            Start::From(k) => (input(k), input(k).is_finite()),
            Start::Mix { a, b, weights } => {
                let (a, b) = (input(a), input(b));
                let mix = Value::of(dtype, weights.0).times(a).plus(Value::of(dtype, weights.1).times(b));
                (mix, a.is_finite() && b.is_finite())
            }
        };
        let mut bits = base[i * width..(i + 1) * width].to_vec();
        if recipe.start == Start::Zeros {
            bits.fill(0);
        }
        for step in &recipe.steps {
            match step {
                Step::Scale(factor) => value = value.times(Value::of(dtype, *factor)),
                Step::Add { input: k, alpha } => {
                    value = value.plus(Value::of(dtype, *alpha).times(input(*k)));
                    sound &= input(*k).is_finite();
                }
                Step::Zero(region) if holds(region, &recipe.shape, i) => {
                    value = Value::of(dtype, 0.0);
                    bits.fill(0);
                    sound = true;
                }
                Step::Zero(_) => {}
            }
        }
        if computes {
            bits = value.store(dtype);
        }
        if !Value::read(dtype, dtype, &bits, 0).is_finite() {
            if sound { broken.push(i) } else { passed += 1 }
        }
        result.extend(bits);
    }
    (result, broken, passed)
}

/// Runs a recipe over the whole tensor, tile by tile.
fn run_all(recipe: &Recipe, base: &[u8], inputs: &[Vec<u8>], count: bool) -> (Vec<u8>, Outcome) {
    let widest = run_by(edit, recipe, base, inputs, count);
    let plain = run_by(plain_edit, recipe, base, inputs, count);
    // As text, because sums may be NaN.
    assert!(plain.0 == widest.0 && format!("{:?}", plain.1) == format!("{:?}", widest.1), "{recipe:?}");
    widest
}

/// As [`edit`] does it on a processor without anything special.
fn plain_edit(recipe: &Recipe, tile: &mut Tile<'_>, count: bool) -> Outcome {
    match recipe.dtype {
        Dtype::F16 if count => strips::<Plain, Half, true>(recipe, tile),
        Dtype::BF16 if count => strips::<Plain, Brain, true>(recipe, tile),
        Dtype::F32 if count => strips::<Plain, Single, true>(recipe, tile),
        Dtype::F16 if recipe.computes() => strips::<Plain, Half, false>(recipe, tile),
        Dtype::BF16 if recipe.computes() => strips::<Plain, Brain, false>(recipe, tile),
        Dtype::F32 if recipe.computes() => strips::<Plain, Single, false>(recipe, tile),
        _ => edit(recipe, tile, count),
    }
}

type Edit = fn(&Recipe, &mut Tile<'_>, bool) -> Outcome;

fn run_by(edit: Edit, recipe: &Recipe, base: &[u8], inputs: &[Vec<u8>], count: bool) -> (Vec<u8>, Outcome) {
    // What computes reads the base as an input.
    let (mut recipe, mut inputs) = (recipe.clone(), inputs.to_vec());
    let mut result = vec![0x55; base.len()];
    if recipe.computes() && recipe.start == Start::InPlace {
        recipe.start = Start::From(inputs.len());
        recipe.inputs.push(recipe.dtype);
        inputs.push(base.to_vec());
    } else {
        result.copy_from_slice(base);
    }
    let (recipe, inputs) = (&recipe, &inputs);
    let mut outcome = Outcome::new(recipe.steps.len());
    for (i, out) in result.chunks_mut(TILE * recipe.width()).enumerate() {
        let first = i * TILE;
        let elements = first..first + out.len() / recipe.width();
        let inputs: Vec<&[u8]> = inputs
            .iter()
            .zip(&recipe.inputs)
            .map(|(bytes, dtype)| {
                let width = dtype.bitsize() / 8;
                &bytes[elements.start * width..elements.end * width]
            })
            .collect();
        outcome.add(&edit(recipe, &mut Tile { first, out, inputs: &inputs, past_caches: count }, count));
    }
    (result, outcome)
}

#[track_caller]
fn check(recipe: &Recipe, base: &[u8], inputs: &[Vec<u8>]) {
    let (expected, broken, passed) = reference(recipe, base, inputs);
    let overflow = broken.first().map(|first| (broken.len() as u64, *first as u64));
    for count in [false, true] {
        let (result, outcome) = run_all(recipe, base, inputs, count);
        let width = recipe.width();
        let wrong = result.chunks(width).zip(expected.chunks(width)).position(|(got, want)| got != want);
        assert_eq!(wrong, None, "first wrong element; counted: {count}; {recipe:?}");
        assert_eq!(outcome.overflow, overflow, "{recipe:?}");
        if count {
            assert_eq!(outcome.passed, passed as u64, "{recipe:?}");
        }
    }
}

/// Bit patterns of a dtype: mostly ordinary, often odd; of an even seed all finite, with finite products and sums.
fn bytes(dtype: Dtype, n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.rotate_left(7) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let odd: &[f32] = &[
        0.0,
        -0.0,
        1.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        65504.0,
        -65504.0,
        1e-40,
        6e-8,
        -6e-8,
        3.3e38,
    ];
    let mut out = Vec::new();
    for _ in 0..n {
        let random = next();
        #[expect(clippy::cast_precision_loss, reason = "any number will do")]
        let value = match random % 8 {
            0 if seed.is_multiple_of(2) => [0.0, -0.0, 1.0, 1e-40, 6e-8, -6e-8][(random >> 8) as usize % 6],
            0 => odd[(random >> 8) as usize % odd.len()],
            1 if !seed.is_multiple_of(2) => f32::from_bits(u32::try_from(random >> 32).unwrap()),
            _ => ((random >> 40) as f32 / 8_388_608.0 - 1.0) * 2.0,
        };
        match dtype {
            Dtype::F16 => out.extend(f16::from_f32(value).to_le_bytes()),
            Dtype::BF16 => out.extend(bf16::from_f32(value).to_le_bytes()),
            _ => out.extend(value.to_le_bytes()),
        }
    }
    out
}

fn float() -> impl Strategy<Value = Dtype> {
    select(vec![Dtype::F16, Dtype::BF16, Dtype::F32])
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    let odd = select(vec![
        vec![],
        vec![0],
        vec![1],
        vec![3, 0],
        vec![0, 3],
        vec![7],
        vec![1023],
        vec![1024],
        vec![1025],
        vec![TILE],
        vec![TILE + 1],
        vec![TILE - 1],
        vec![2, TILE + 3],
        vec![257, 129],
        vec![1, 1, 1],
        vec![5, 3, 2],
    ]);
    prop_oneof![odd, prop::collection::vec(0usize..40, 0..4)]
}

fn region(shape: &[usize]) -> BoxedStrategy<Region> {
    let axes: Vec<usize> = (0..shape.len().min(2)).filter(|axis| shape[*axis] > 0).collect();
    if axes.is_empty() {
        return Just(Region::Whole).boxed();
    }
    let shape = shape.to_vec();
    (select(axes), prop::collection::btree_set(0usize..1 << 20, 1..12), any::<bool>())
        .prop_map(move |(axis, cuts, whole)| {
            let n = shape[axis];
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (n + 1)).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let ranges: Vec<_> = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            if ranges.is_empty() && whole {
                Region::Whole
            } else {
                Region::Slices { axis, ranges: ranges.into() }
            }
        })
        .boxed()
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 1e-8, 65504.0, 1e30, 1e-30]), -3.0..3.0f64]
}

fn recipe() -> impl Strategy<Value = Recipe> {
    (float(), shape()).prop_flat_map(|(dtype, shape)| {
        let step = prop_oneof![
            number().prop_map(Step::Scale),
            (0usize..3, number()).prop_map(|(input, alpha)| Step::Add { input, alpha }),
            region(&shape).prop_map(Step::Zero),
        ];
        let start = prop_oneof![
            3 => Just(Start::InPlace),
            1 => Just(Start::Zeros),
            1 => (0usize..3).prop_map(Start::From),
            1 => (0.0..1.0).prop_map(|t| Start::Mix { a: 0, b: 1, weights: (1.0 - t, t) }),
        ];
        let member = select(vec![Member::None, Member::Scales, Member::Biases]);
        let inputs = prop::collection::vec(float(), 3);
        (start, prop::collection::vec(step, 0..5), inputs, member).prop_map(
            move |(start, steps, inputs, member)| Recipe {
                dtype,
                shape: shape.clone(),
                start,
                steps,
                inputs,
                member,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_recipe_gives_what_one_element_at_a_time_gives(recipe in recipe(), seed in any::<u64>()) {
        let n = recipe.elements();
        let base = bytes(recipe.dtype, n, seed);
        let inputs: Vec<Vec<u8>> =
            (1u64..).zip(&recipe.inputs).map(|(k, dtype)| bytes(*dtype, n, seed.wrapping_mul(2 * k + 1))).collect();
        check(&recipe, &base, &inputs);
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
    let value = |bytes: &[u8], i| match Value::read(dtype, dtype, bytes, i) {
        Value::Narrow(x) => f64::from(x),
        Value::Wide(x) => x,
    };
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
    let number = |value: Value| match value {
        Value::Narrow(x) => f64::from(x),
        Value::Wide(x) => x,
    };
    let least = if dtype == Dtype::F16 { 6.103_515_625e-5 } else { f64::from(f32::MIN_POSITIVE) };
    let (mut fallen, mut error, mut square) = (0, 0.0, 0.0);
    for i in 0..base.len() / (dtype.bitsize() / 8) {
        let before = Value::read(dtype, dtype, base, i);
        let exact = number(before.times(Value::of(dtype, factor)));
        let after = number(Value::read(dtype, dtype, result, i));
        fallen += u64::from(number(before).abs() >= least && after.abs() < least);
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
        let entered = match Value::of(dtype, number) {
            Value::Narrow(x) => f64::from(x),
            Value::Wide(x) => x,
        };
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

fn plain(dtype: Dtype, shape: &[usize], steps: Vec<Step>) -> Recipe {
    Recipe {
        dtype,
        shape: shape.to_vec(),
        start: Start::InPlace,
        steps,
        inputs: Vec::new(),
        member: Member::None,
    }
}

#[test]
fn zeroing_keeps_every_other_bit_even_of_nans() {
    let base: Vec<u8> =
        [0xffc1u16, 0x7f81, 0x8000, 0x7f80].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let second = Region::Slices { axis: 0, ranges: std::iter::once(1..2).collect() };
    let recipe = plain(Dtype::BF16, &[4], vec![Step::Zero(second)]);
    let (result, outcome) = run_all(&recipe, &base, &[], true);
    assert_eq!(result, [0xc1, 0xff, 0, 0, 0, 0x80, 0x80, 0x7f]);
    assert_eq!((outcome.steps[0].changed, outcome.passed), (1, 2));
}

#[test]
fn integers_are_zeroed_by_their_own_width() {
    let ends = Region::Slices { axis: 1, ranges: [0..1, 2..3].into() };
    let recipe = plain(Dtype::I64, &[2, 3], vec![Step::Zero(ends)]);
    let base: Vec<u8> = (1..=6i64).flat_map(i64::to_le_bytes).collect();
    let (result, _) = run_all(&recipe, &base, &[], true);
    let expected: Vec<u8> = [0, 2, 0, 0, 5, 0i64].into_iter().flat_map(i64::to_le_bytes).collect();
    assert_eq!(result, expected);
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
