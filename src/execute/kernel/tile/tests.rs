//! Random recipes against a reference that does one element at a time.

mod counts;

use half::{bf16, f16};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::execute::kernel::simd::Scalar;
use crate::execute::recipe::{Member, Start, Step};
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

    fn to_f64(self) -> f64 {
        match self {
            Self::Narrow(x) => f64::from(x),
            Self::Wide(x) => x,
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
    let widest = run_by(edit, recipe, base, inputs, count, false);
    let scalar = run_by(scalar_edit, recipe, base, inputs, count, false);
    if !count {
        let past_caches = run_by(edit, recipe, base, inputs, count, true);
        assert!(past_caches.0 == widest.0, "{recipe:?}");
    }
    // As text, because sums may be NaN.
    assert!(scalar.0 == widest.0 && format!("{:?}", scalar.1) == format!("{:?}", widest.1), "{recipe:?}");
    widest
}

/// What [`edit`] does on a processor without anything special.
fn scalar_edit(recipe: &Recipe, tile: &mut Tile<'_>, count: bool) -> Outcome {
    let is_float = matches!(recipe.dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32);
    if is_float && (count || recipe.computes()) {
        Scalar.run(Edit { recipe, tile, count })
    } else {
        edit(recipe, tile, count)
    }
}

type AnyEdit = fn(&Recipe, &mut Tile<'_>, bool) -> Outcome;

fn run_by(
    edit: AnyEdit,
    recipe: &Recipe,
    base: &[u8],
    inputs: &[Vec<u8>],
    count: bool,
    past_caches: bool,
) -> (Vec<u8>, Outcome) {
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
        outcome.add(&edit(recipe, &mut Tile { first, out, inputs: &inputs, past_caches }, count));
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

/// NaNs whose payload is all ones, which rounding to BF16 by addition would make zeros of.
#[test]
fn nans_of_other_dtypes_stay_nans() {
    let steps = [
        vec![Step::Add { input: 0, alpha: 1.0 }],
        vec![Step::Scale(1.5), Step::Add { input: 0, alpha: -0.5 }],
        vec![],
    ];
    for (dtype, nans) in
        [(Dtype::F32, vec![0x7fff_ffff, 0xffff_ffff]), (Dtype::F16, vec![0x7fff, 0xffff_u32])]
    {
        for (steps, nan) in steps.iter().flat_map(|steps| nans.iter().map(move |nan| (steps, nan))) {
            let width = dtype.bitsize() / 8;
            let mut donor = vec![0; 1024 * width];
            donor[7 * width..8 * width].copy_from_slice(&nan.to_le_bytes()[..width]);
            let mut recipe = plain(Dtype::BF16, &[1024], steps.clone());
            recipe.inputs.push(dtype);
            if steps.is_empty() {
                recipe.start = Start::From(0);
            }
            check(&recipe, &bytes(Dtype::BF16, 1024, 2), &[donor]);
        }
    }
}
