//! Which tokens are drawn, and how often.

use super::*;

fn sampling(change: impl FnOnce(&mut Sampling)) -> Sampling {
    let mut sampling = Sampling { temperature: 1.0, seed: 1, ..Sampling::default() };
    change(&mut sampling);
    sampling
}

/// Number of times that each token is drawn in 4,000 draws.
fn histogram(logits: &[f32], sampling: Sampling) -> Vec<usize> {
    let mut sampler = Sampler::new(sampling);
    let mut counts = vec![0; logits.len()];
    for _ in 0..4000 {
        counts[sampler.sample(logits, &[]).expect("finite logits") as usize] += 1;
    }
    counts
}

#[track_caller]
fn check_support(logits: &[f32], change: impl FnOnce(&mut Sampling), expected: &[usize]) {
    let drawn = histogram(logits, sampling(change));
    let support: Vec<usize> = (0..drawn.len()).filter(|id| drawn[*id] > 0).collect();
    assert_eq!(support, expected, "{drawn:?}");
}

/// Logits whose probabilities are 0.1, 0.4, 0.2, 0.3.
fn known() -> [f32; 4] {
    [0.1f32, 0.4, 0.2, 0.3].map(f32::ln)
}

#[test]
fn temperature_zero_picks_the_lowest_id_among_the_most_likely() {
    let mut sampler = Sampler::new(Sampling::default());
    assert_eq!(sampler.sample(&[1.0, 3.0, 3.0, -2.0], &[]).unwrap(), 1);
    assert_eq!(sampler.sample(&[f32::NEG_INFINITY, -3.0e38], &[]).unwrap(), 1);
}

#[test]
fn draws_follow_the_probabilities() {
    let drawn = histogram(&known(), sampling(|_| ()));
    for (count, expected) in drawn.iter().zip([400, 1600, 800, 1200]) {
        assert!(count.abs_diff(expected) < 100, "{drawn:?}");
    }
}

#[test]
fn a_low_temperature_sharpens_the_distribution() {
    let drawn = histogram(&known(), sampling(|s| s.temperature = 0.5));
    // Squares of the probabilities, normalized: 1/30, 16/30, 4/30, 9/30.
    for (count, expected) in drawn.iter().zip([133, 2133, 533, 1200]) {
        assert!(count.abs_diff(expected) < 100, "{drawn:?}");
    }
}

#[test]
fn top_k_keeps_the_k_most_likely() {
    check_support(&known(), |s| s.top_k = 2, &[1, 3]);
    check_support(&known(), |s| s.top_k = 1, &[1]);
    check_support(&known(), |s| s.top_k = 9, &[0, 1, 2, 3]);
    // Among equals the lower ids are kept.
    check_support(&[0.0; 5], |s| s.top_k = 3, &[0, 1, 2]);
}

#[test]
fn top_p_keeps_the_smallest_set_that_reaches_p() {
    check_support(&known(), |s| s.top_p = 0.39, &[1]);
    check_support(&known(), |s| s.top_p = 0.69, &[1, 3]);
    check_support(&known(), |s| s.top_p = 0.71, &[1, 2, 3]);
    check_support(&known(), |s| s.top_p = 1e-9, &[1]);
}

#[test]
fn top_p_follows_top_k() {
    // 0.4 and 0.3 renormalized: the first alone is 0.571.
    check_support(&known(), |s| (s.top_k, s.top_p) = (2, 0.55), &[1]);
    check_support(&known(), |s| (s.top_k, s.top_p) = (2, 0.6), &[1, 3]);
}

#[test]
fn min_p_is_relative_to_the_highest_probability() {
    check_support(&known(), |s| s.min_p = 0.6, &[1, 3]);
    check_support(&known(), |s| s.min_p = 1.0, &[1]);
}

#[test]
fn a_nucleus_may_be_wider_than_the_first_sorted_prefix() {
    let logits: Vec<f32> = (0..2000u16).map(|id| f32::from(id % 7) * 0.01).collect();
    let mut candidates: Vec<Candidate> = (0u32..)
        .zip(&logits)
        .map(|(id, &logit)| Candidate { id, logit, weight: f64::from(logit).exp() })
        .collect();
    let total: f64 = candidates.iter().map(|c| c.weight).sum();
    keep_nucleus(&mut candidates, 0.9);
    let kept: f64 = candidates.iter().map(|c| c.weight).sum();
    assert!(kept >= 0.9 * total && kept < 0.901 * total);
    assert!(candidates.is_sorted_by(|a, b| by_likelihood(a, b).is_lt()));
}

#[test]
fn the_penalty_divides_positive_and_multiplies_negative_logits_once() {
    let greedy = Sampling { repetition_penalty: 2.0, ..Sampling::default() };
    assert_eq!(Sampler::new(greedy.clone()).sample(&[3.0, 2.0, 1.0], &[0, 0, 0]).unwrap(), 1);
    assert_eq!(Sampler::new(greedy.clone()).sample(&[-1.0, -1.5, -9.0], &[0]).unwrap(), 1);
    assert_eq!(Sampler::new(greedy.clone()).sample(&[3.9, 2.0, 1.0], &[0, 0]).unwrap(), 1);
    assert_eq!(Sampler::new(greedy).sample(&[4.1, 2.0, 1.0], &[0, 0]).unwrap(), 0);
}

#[test]
fn the_penalty_ignores_tokens_before_its_window() {
    let short = Sampling { repetition_penalty: 2.0, repetition_window: 2, ..Sampling::default() };
    assert_eq!(Sampler::new(short).sample(&[3.0, 2.0, 1.0], &[0, 7, 7]).unwrap(), 0);
}

#[test]
fn seeds_determine_the_tokens() {
    let logits: Vec<f32> = (0..100u8).map(|x| f32::from(x % 13) * 0.3).collect();
    let run = |seed| {
        let mut sampler = Sampler::new(sampling(|s| s.seed = seed));
        (0..12).map(|_| sampler.sample(&logits, &[]).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    // Users rely on these: they must never change.
    assert_eq!(run(42), [77, 35, 98, 71, 77, 60, 12, 62, 23, 90, 57, 85]);
}

#[test]
fn invalid_logits_are_errors() {
    for bad in [f32::NAN, f32::INFINITY] {
        let error = Sampler::new(Sampling::default()).sample(&[0.0, bad], &[]).unwrap_err();
        assert!(error.to_string().contains("token 1"), "{error}");
    }
    for nothing in [&[][..], &[f32::NEG_INFINITY; 3]] {
        let error = Sampler::new(sampling(|_| ())).sample(nothing, &[]).unwrap_err();
        assert!(error.to_string().contains("every token"), "{error}");
    }
}

#[test]
fn masked_tokens_are_never_drawn() {
    check_support(&[f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, -1.0], |_| (), &[1, 3]);
}
