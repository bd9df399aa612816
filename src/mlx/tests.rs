//! The facade against MLX itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Memory that counts its drops.
struct Owner(Vec<u8>, Arc<AtomicUsize>);

impl AsMut<[u8]> for Owner {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn handed_over_memory_is_read_as_it_is_and_dropped_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let bytes: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let array = Array::from_owner(Owner(bytes, drops.clone()), &[2, 1], Dtype::Float32).unwrap();
    assert_eq!(array.to_f32().unwrap(), [1.5, -2.0]);
    drop(array);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn memory_that_is_too_short_is_refused_and_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = Owner(vec![0; 7], drops.clone());
    assert!(Array::from_owner(owner, &[2], Dtype::Float32).is_err());
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_wrong_shape_is_an_error_with_what_mlx_said() {
    let a = Array::zeros(&[2, 3], Dtype::Float32).unwrap();
    let error = a.matmul(&a).unwrap_err().to_string();
    assert!(error.contains("matmul") && !error.contains(".cpp"), "{error}");
    assert!(a.slice(&[0], &[1]).is_err());
    assert!(Array::from_f32(&[1.0], &[2]).is_err());
}

#[test]
fn the_place_in_the_sources_is_no_part_of_a_message() {
    assert_eq!(without_place("no such axis at /somewhere/ops.cpp:12"), "no such axis");
    assert_eq!(without_place("look at that"), "look at that");
}

#[test]
fn slices_of_an_updated_array_show_the_update() {
    let base = Array::zeros(&[2, 4], Dtype::Float32).unwrap();
    let update = Array::from_f32(&[1.0, 2.0], &[1, 2]).unwrap();
    let updated = base.clone().updated(&update, &[1, 1], &[2, 3]).unwrap();
    assert_eq!(updated.to_f32().unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0]);
    assert_eq!(updated.slice(&[1, 2], &[2, 4]).unwrap().to_f32().unwrap(), [2.0, 0.0]);
    assert_eq!(base.to_f32().unwrap(), [0.0; 8]);
}

/// Weights in codes, alone and as one of several.
#[test]
fn products_with_codes_are_those_with_what_they_stand_for() {
    let values: Vec<f32> = (0..2 * 32 * 64_u16).map(|i| (f32::from(i) * 0.7).sin()).collect();
    let weight = Array::from_f32(&values, &[2, 32, 64]).unwrap();
    let x = Array::from_f32(&values[..64], &[1, 1, 1, 1, 64]).unwrap();
    let chosen = Array::from_u32(&[1, 0, 1], &[1, 1, 3]).unwrap();
    for (mode, bits, group_size) in [
        (Mode::Affine, 3, 64),
        (Mode::Affine, 8, 32),
        (Mode::Mxfp4, 4, 32),
        (Mode::Mxfp8, 8, 32),
        (Mode::Nvfp4, 4, 16),
    ] {
        let packed = Packed::quantize(&weight, Packing { mode, bits, group_size });
        assert_eq!(packed.biases.is_some(), mode == Mode::Affine);
        let dense = packed.dequantize(Dtype::Float32).unwrap();
        assert_eq!(dense.dtype(), Dtype::Float32);
        let transposed = dense.transpose(&[0, 2, 1]).unwrap();
        let found = packed.matmul_of(&x, &chosen).unwrap().to_f32().unwrap();
        let wanted = x.matmul_of(&transposed, &chosen).unwrap().to_f32().unwrap();
        assert_eq!(found.len(), 3 * 32);
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-3, "{mode:?}: {found}, not {wanted}");
        }
        let first = packed.map(|member| member.rows(&Array::from_u32(&[0], &[1]).unwrap())).unwrap();
        let found = first.map(|member| member.reshape(&[32, -1])).unwrap().matmul(&x).unwrap();
        let wanted = x.matmul(&transposed.slice(&[0, 0, 0], &[1, 64, 32]).unwrap()).unwrap();
        for (found, wanted) in found.to_f32().unwrap().iter().zip(wanted.to_f32().unwrap()) {
            assert!((found - wanted).abs() < 1e-3, "{mode:?}: {found}, not {wanted}");
        }
    }
}
