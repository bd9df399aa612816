//! The product against its definition.

use super::super::Array;

export_sgemm!();

fn values(count: usize, salt: u32) -> Vec<f32> {
    let mut state = salt;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        #[expect(clippy::cast_precision_loss, reason = "any values will do")]
        let value = (state >> 8) as f32 / (1 << 23) as f32 - 1.0;
        value
    })
    .take(count)
    .collect()
}

/// x · Wᵀ as MLX computes it.
fn product(x: &[f32], w: &[f32], k: usize) -> Vec<f32> {
    let array = |of: &[f32]| {
        Array::from_f32(of, &[i32::try_from(of.len() / k).unwrap(), i32::try_from(k).unwrap()]).unwrap()
    };
    array(x).matmul(&array(w).transpose(&[1, 0]).unwrap()).unwrap().to_f32().unwrap()
}

/// One element in the order that the module promises.
fn element(x: &[f32], w: &[f32]) -> f32 {
    let blocks = x.len().div_ceil(512);
    let block = x.len().div_ceil(blocks).next_multiple_of(8);
    let mut total = 0.0;
    for (x, w) in x.chunks(block).zip(w.chunks(block)) {
        let mut lanes = [0.0_f32; 8];
        for (x, w) in x.chunks(8).zip(w.chunks(8)) {
            for (lane, (x, w)) in lanes.iter_mut().zip(x.iter().zip(w)) {
                *lane = x.mul_add(*w, *lane);
            }
        }
        let four: [f32; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
        total += (four[0] + four[2]) + (four[1] + four[3]);
    }
    total
}

#[test]
fn each_element_is_summed_in_the_one_order() {
    if !super::avx2::is_there() {
        return;
    }
    for (n, k) in [(1, 1), (3, 7), (7, 64), (30, 577), (1100, 1536), (5, 1029)] {
        let (x, w) = (values(11 * k, 1), values(n * k, 2));
        let wanted: Vec<u32> =
            x.chunks(k).flat_map(|x| w.chunks(k).map(|w| element(x, w).to_bits())).collect();
        for rows in 1..=11 {
            let found = product(&x[..rows * k], &w, k);
            assert!(
                found.iter().map(|y| y.to_bits()).eq(wanted[..rows * n].iter().copied()),
                "{rows} rows, {n} columns, sums of {k}"
            );
        }
    }
}

#[test]
fn the_library_computes_what_has_many_rows_or_another_form() {
    let (rows, n, k) = (40, 9, 33);
    let (x, w) = (values(rows * k, 3), values(n * k, 4));
    let near = |found: &[f32], wanted: Vec<f32>| {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-4, "{found}, not {wanted}");
        }
    };
    let wanted = |rows: &[f32]| rows.chunks(k).flat_map(|x| w.chunks(k).map(|w| element(x, w))).collect();
    near(&product(&x, &w, k), wanted(&x));
    let turned: Vec<f32> = (0..k).flat_map(|at| w.chunks(k).map(move |w| w[at])).collect();
    let few = Array::from_f32(&x[..2 * k], &[2, 33]).unwrap();
    let found = few.matmul(&Array::from_f32(&turned, &[33, 9]).unwrap()).unwrap().to_f32().unwrap();
    near(&found, wanted(&x[..2 * k]));
}
