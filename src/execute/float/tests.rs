use super::super::lanes::Plain;
#[cfg(target_arch = "x86_64")]
use super::super::wide::Wide;
use super::*;

/// Every bit pattern decodes and encodes to itself, but for NaNs, which all become one.
fn check_round_trip<M: Machine, S: Stored<Bits = u16, Work = f32>>(infinity: u16, nan: u16) {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for strip in all.as_chunks::<STRIP>().0 {
        let (mut values, mut back) = ([0.0; STRIP], [0; STRIP]);
        S::decode::<M>(strip, &mut values);
        let sound = S::encode::<M>(|i| values[i], &mut back);
        assert_eq!(sound, strip.iter().all(|bits| bits & 0x7fff < infinity), "{:#x}", strip[0]);
        if sound {
            assert_eq!(back, *strip);
            for (bits, values) in strip.as_chunks().0.iter().zip(values.as_chunks().0) {
                assert_eq!(S::widen::<M>(bits).store().map(f32::to_bits), values.map(f32::to_bits));
                assert_eq!(S::narrow::<M>(S::Lanes::load(values)), *bits);
            }
        }
        S::encode_any(|i| values[i], &mut back);
        for (bits, back) in strip.iter().zip(&back) {
            let expected = if bits & 0x7fff > infinity { nan } else { *bits };
            assert_eq!(*back, expected, "{bits:#x}");
        }
    }
}

#[test]
fn every_half_survives_the_way_there_and_back() {
    check_round_trip::<Plain, Half>(0x7c00, 0x7e00);
    check_round_trip::<Plain, Brain>(0x7f80, 0x7fc0);
    #[cfg(target_arch = "x86_64")]
    if Wide::is_here() {
        check_round_trip::<Wide, Half>(0x7c00, 0x7e00);
        check_round_trip::<Wide, Brain>(0x7f80, 0x7fc0);
    }
}

#[track_caller]
fn check<S: Stored>(value: S::Work, expected: S::Bits)
where
    S::Bits: std::fmt::LowerHex + std::fmt::Debug,
{
    let (mut bits, mut any) = ([S::Bits::default(); STRIP], [S::Bits::default(); STRIP]);
    let sound = S::encode::<Plain>(|_| value, &mut bits);
    S::encode_any(|_| value, &mut any);
    assert_eq!(any[STRIP - 1], expected, "{:#x} is not {expected:#x}", any[STRIP - 1]);
    assert_eq!(sound, value.abs() < S::LIMIT);
    assert!(!sound || bits == any);
}

#[test]
fn ties_go_to_even() {
    check::<Brain>(f32::from_bits(0x3f80_8000), 0x3f80);
    check::<Brain>(f32::from_bits(0x3f81_8000), 0x3f82);
    check::<Brain>(f32::from_bits(0x3f80_8001), 0x3f81);
    check::<Half>(1.0 + 1.0 / 2048.0, 0x3c00);
    check::<Half>(1.0 + 3.0 / 2048.0, 0x3c02);
    check::<Single>(1.0 + 2f64.powi(-24), 0x3f80_0000);
    check::<Single>(1.0 + 3.0 * 2f64.powi(-24), 0x3f80_0002);
}

#[test]
fn the_limit_is_the_first_value_that_becomes_infinite() {
    check::<Half>(65520.0, 0x7c00);
    check::<Half>(65520f32.next_down(), 0x7bff);
    check::<Brain>(Brain::LIMIT, 0x7f80);
    check::<Brain>(Brain::LIMIT.next_down(), 0x7f7f);
    check::<Single>(Single::LIMIT, 0x7f80_0000);
    check::<Single>(Single::LIMIT.next_down(), 0x7f7f_ffff);
    check::<Single>(-Single::LIMIT, 0xff80_0000);
}

#[test]
fn a_nan_is_positive_and_quiet_whatever_it_was() {
    check::<Half>(f32::from_bits(0xff80_0001), 0x7e00);
    check::<Brain>(f32::from_bits(0xffff_ffff), 0x7fc0);
    check::<Single>(f64::from_bits(0xfff0_0000_0000_0001), 0x7fc0_0000);
}

#[test]
fn subnormals_are_numbers() {
    check::<Half>(2f32.powi(-24), 0x0001);
    check::<Half>(2f32.powi(-25), 0x0000);
    check::<Half>(-2f32.powi(-25), 0x8000);
    check::<Half>(2f32.powi(-25).next_up(), 0x0001);
    check::<Brain>(f32::from_bits(0x0001_0000), 0x0001);
    check::<Single>(2f64.powi(-149), 0x0000_0001);
}
