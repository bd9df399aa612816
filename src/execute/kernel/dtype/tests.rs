#[cfg(target_arch = "x86_64")]
use super::super::avx2::Avx2;
use super::super::simd::Scalar;
use super::*;

/// Every bit pattern widens and narrows to itself, except that all NaNs become one.
fn check_round_trip<F: Float<Bits = u16, Work = f32>>(token: impl Simd) {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for bits in all.as_chunks().0 {
        let values = F::widen(token, bits);
        let mut expected = *bits;
        for bits in &mut expected {
            *bits = if *bits & 0x7fff > F::INFINITY { F::NAN } else { *bits };
        }
        assert_eq!(F::narrow_any(token, values), expected, "{:#x}", bits[0]);
        if bits.iter().all(|bits| bits & 0x7fff <= F::INFINITY) {
            assert_eq!(values.store().map(f32::to_bits), F::widen(Scalar, bits).store().map(f32::to_bits));
        }
    }
}

#[test]
fn every_half_survives_the_way_there_and_back() {
    check_round_trip::<F16>(Scalar);
    check_round_trip::<Bf16>(Scalar);
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx2::detect() {
        check_round_trip::<F16>(token);
        check_round_trip::<Bf16>(token);
    }
}

/// A strip decodes to the values of its elements, in either working precision and at any length.
#[test]
fn a_donor_of_any_length_is_decoded_and_the_rest_is_zero() {
    for n in [0, 1, 17, STRIP] {
        let singles: Vec<f32> = (0u16..).take(n).map(|i| f32::from(i) - 300.5).collect();
        let bytes = |dtype| -> Vec<u8> {
            let bytes = |value: &f32| match dtype {
                Dtype::F16 => half::f16::from_f32(*value).to_le_bytes().to_vec(),
                Dtype::BF16 => half::bf16::from_f32(*value).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            singles.iter().flat_map(bytes).collect()
        };
        for dtype in [Dtype::F16, Dtype::BF16, Dtype::F32] {
            let (mut narrow, mut wide) = ([1.0f32; STRIP], [1.0f64; STRIP]);
            decode(Scalar, dtype, &bytes(dtype), &mut narrow);
            decode(Scalar, dtype, &bytes(dtype), &mut wide);
            for i in 0..STRIP {
                let single = singles.get(i).copied().unwrap_or_default();
                let expected = match dtype {
                    Dtype::F16 => half::f16::from_f32(single).to_f32(),
                    Dtype::BF16 => half::bf16::from_f32(single).to_f32(),
                    _ => single,
                };
                assert_eq!((narrow[i].to_bits(), wide[i]), (expected.to_bits(), f64::from(expected)));
            }
        }
    }
}

#[track_caller]
fn check<F: Float>(value: F::Work, expected: F::Bits)
where
    F::Bits: std::fmt::LowerHex,
{
    let values = LanesOf::<F, Scalar>::splat(Scalar, value);
    let got = F::narrow_any(Scalar, values)[15];
    assert!(got == expected, "{got:#x} is not {expected:#x}");
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx2::detect() {
        assert!(
            F::narrow_any(token, LanesOf::<F, Avx2>::splat(token, value)) == F::narrow_any(Scalar, values)
        );
    }
}

#[test]
fn ties_go_to_even() {
    check::<Bf16>(f32::from_bits(0x3f80_8000), 0x3f80);
    check::<Bf16>(f32::from_bits(0x3f81_8000), 0x3f82);
    check::<Bf16>(f32::from_bits(0x3f80_8001), 0x3f81);
    check::<F16>(1.0 + 1.0 / 2048.0, 0x3c00);
    check::<F16>(1.0 + 3.0 / 2048.0, 0x3c02);
    check::<F32>(1.0 + 2f64.powi(-24), 0x3f80_0000);
    check::<F32>(1.0 + 3.0 * 2f64.powi(-24), 0x3f80_0002);
}

/// The limit is halfway between the largest number and the next power of two; the tie goes up.
#[test]
fn the_limit_is_the_first_value_that_becomes_infinite() {
    const BF16_LIMIT: f32 = f32::from_bits(0x7f7f_8000);
    const F32_LIMIT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    check::<F16>(65520.0, 0x7c00);
    check::<F16>(65520f32.next_down(), 0x7bff);
    check::<Bf16>(BF16_LIMIT, 0x7f80);
    check::<Bf16>(BF16_LIMIT.next_down(), 0x7f7f);
    check::<F32>(F32_LIMIT, 0x7f80_0000);
    check::<F32>(F32_LIMIT.next_down(), 0x7f7f_ffff);
    check::<F32>(-F32_LIMIT, 0xff80_0000);
}

#[test]
fn a_nan_is_positive_and_quiet_whatever_it_was() {
    check::<F16>(f32::from_bits(0xff80_0001), 0x7e00);
    check::<Bf16>(f32::from_bits(0xffff_ffff), 0x7fc0);
    check::<F32>(f64::from_bits(0xfff0_0000_0000_0001), 0x7fc0_0000);
}

#[test]
fn subnormals_are_numbers() {
    check::<F16>(2f32.powi(-24), 0x0001);
    check::<F16>(2f32.powi(-25), 0x0000);
    check::<F16>(-2f32.powi(-25), 0x8000);
    check::<F16>(2f32.powi(-25).next_up(), 0x0001);
    check::<Bf16>(f32::from_bits(0x0001_0000), 0x0001);
    check::<F32>(2f64.powi(-149), 0x0000_0001);
}
