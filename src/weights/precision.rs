//! The dtype policy: the dtype that weights have in memory, and whether they are dequantized.
//!
//! On the CPU half precision is emulated and quantized products are scalar, so everything becomes f32 and affine sets
//! are dequantized (in f32: in bf16 they would lose up to a step), as long as that fits in memory. On Apple GPUs f16
//! is faster than bf16; unquantized models are converted when every weight stays finite and the family's activations
//! are known to as well. `--dtype` overrides both.

use super::CheckpointFacts;
use crate::checkpoint::Family;
use crate::mlx::{self, Array, Device, Dtype};

/// The choice of `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The fastest on this device.
    #[default]
    Auto,
    /// The checkpoint's.
    Native,
    /// 32-bit floats, quantized weights dequantized.
    F32,
    /// IEEE half precision; quantized weights stay packed.
    F16,
    /// bfloat16; quantized weights stay packed.
    Bf16,
}

/// What happens to every weight on its way into the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    cast: Cast,
    unpack: bool,
    line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cast {
    Keep,
    /// Every float tensor.
    To(Dtype),
    /// bf16 tensors to f16, others stay.
    HalveBf16,
}

impl Policy {
    /// Everything stays as the checkpoint has it.
    #[must_use]
    pub fn native() -> Self {
        Self { cast: Cast::Keep, unpack: false, line: "computing in the checkpoint's dtype".into() }
    }

    /// Decides. `finite` says whether all bf16 weights stay finite in f16; it is called only where that matters.
    ///
    /// # Errors
    /// The error of `finite`.
    pub fn decide<E>(
        asked: Precision,
        device: Device,
        facts: &CheckpointFacts,
        memory: Option<u64>,
        finite: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Self, E> {
        let policy = |cast, unpack, line: String| Ok(Self { cast, unpack, line });
        let dequantized = |before, after| {
            if facts.quantized {
                format!("{before}quantized weights were dequantized{after}")
            } else {
                String::new()
            }
        };
        match (asked, device) {
            (Precision::Native, _) => Ok(Self::native()),
            (Precision::F32, _) => {
                policy(Cast::To(Dtype::Float32), true, format!("computing in f32{}", dequantized(" (", ")")))
            }
            (Precision::F16, _) => policy(Cast::To(Dtype::Float16), false, "computing in f16".into()),
            (Precision::Bf16, _) => policy(Cast::To(Dtype::Bfloat16), false, "computing in bf16".into()),
            (Precision::Auto, Device::Cpu) => match memory.filter(|&memory| facts.f32_bytes > memory) {
                Some(memory) if facts.quantized => policy(
                    Cast::To(Dtype::Float32),
                    false,
                    format!("computing in f32 with packed weights (slower): {}", misfit(facts, memory)),
                ),
                Some(memory) => policy(
                    Cast::Keep,
                    false,
                    format!("computing in the checkpoint's dtype (slower): {}", misfit(facts, memory)),
                ),
                None => policy(
                    Cast::To(Dtype::Float32),
                    true,
                    format!("computing in f32 (fastest on this CPU{})", dequantized("; ", "")),
                ),
            },
            (Precision::Auto, Device::Gpu) => {
                let exempt = !Family::of(&facts.model_type).is_f16_safe;
                if facts.quantized || !facts.bf16 {
                    Ok(Self::native())
                } else if exempt {
                    let line =
                        format!("computing in bf16 (activations of {} overflow f16)", facts.model_type);
                    policy(Cast::Keep, false, line)
                } else if finite()? {
                    policy(
                        Cast::HalveBf16,
                        false,
                        "computing in f16, converted from bf16 (faster on this GPU)".into(),
                    )
                } else {
                    policy(Cast::Keep, false, "computing in bf16 (some weights overflow f16)".into())
                }
            }
        }
    }

    /// The decision as a sentence fragment.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The decision as a word: `f32`, `f32-packed`, `f16`, `bf16`, `f16-from-bf16` or `native`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (self.cast, self.unpack) {
            (Cast::To(Dtype::Float32), true) => "f32",
            (Cast::To(Dtype::Float32), false) => "f32-packed",
            (Cast::To(Dtype::Float16), _) => "f16",
            (Cast::To(_), _) => "bf16",
            (Cast::HalveBf16, _) => "f16-from-bf16",
            (Cast::Keep, _) => "native",
        }
    }

    /// The dtype of values for which no stored tensor gives one.
    pub(super) fn float(&self) -> Dtype {
        match self.cast {
            Cast::To(dtype) => dtype,
            Cast::HalveBf16 => Dtype::Float16,
            Cast::Keep => Dtype::Bfloat16,
        }
    }

    /// Whether packed weights are dequantized.
    pub(super) fn unpacks(&self) -> bool {
        self.unpack
    }

    /// Casts a tensor to its dtype, lazily.
    pub(super) fn cast(&self, tensor: &Array) -> mlx::Result<Array> {
        match self.cast {
            Cast::To(dtype) if tensor.is_float() => tensor.cast(dtype),
            Cast::HalveBf16 if tensor.dtype() == Dtype::Bfloat16 => tensor.cast(Dtype::Float16),
            _ => Ok(tensor.clone()),
        }
    }
}

fn misfit(facts: &CheckpointFacts, memory: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let gb = |bytes: u64| bytes as f64 / 1e9;
    format!("{:.1} GB in f32 would not fit in {:.1} GB of memory", gb(facts.f32_bytes), gb(memory))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn facts(model_type: &str, quantized: bool, bf16: bool) -> CheckpointFacts {
        CheckpointFacts { model_type: model_type.into(), quantized, bf16, f32_bytes: 4_000_000_000 }
    }

    #[track_caller]
    fn check(
        asked: Precision,
        device: Device,
        facts: &CheckpointFacts,
        finite: bool,
        wanted: (Cast, bool, &str),
    ) {
        let memory = Some(8_000_000_000);
        let Ok(policy) = Policy::decide(asked, device, facts, memory, || Ok::<_, Infallible>(finite));
        assert_eq!((policy.cast, policy.unpack), (wanted.0, wanted.1));
        assert!(policy.line.contains(wanted.2), "{}", policy.line);
    }

    #[test]
    fn the_cpu_computes_in_f32_and_dequantizes() {
        let wanted = (Cast::To(Dtype::Float32), true, "f32");
        check(Precision::Auto, Device::Cpu, &facts("llama", true, false), true, wanted);
        check(Precision::Auto, Device::Cpu, &facts("gemma2", false, true), true, wanted);
    }

    #[test]
    fn what_would_not_fit_in_memory_stays_small() {
        let huge =
            |quantized| CheckpointFacts { f32_bytes: 31_200_000_000, ..facts("llama", quantized, true) };
        let packed = (
            Cast::To(Dtype::Float32),
            false,
            "packed weights (slower): 31.2 GB in f32 would not fit in 8.0 GB",
        );
        check(Precision::Auto, Device::Cpu, &huge(true), true, packed);
        check(Precision::Auto, Device::Cpu, &huge(false), true, (Cast::Keep, false, "would not fit"));
        check(Precision::F32, Device::Cpu, &huge(true), true, (Cast::To(Dtype::Float32), true, "f32"));
    }

    #[test]
    fn the_gpu_takes_f16_where_weights_and_activations_stay_finite() {
        let check = |facts: &CheckpointFacts, finite, wanted| {
            check(Precision::Auto, Device::Gpu, facts, finite, wanted);
        };
        check(&facts("llama", false, true), true, (Cast::HalveBf16, false, "f16"));
        check(&facts("llama", false, true), false, (Cast::Keep, false, "some weights overflow"));
        check(&facts("gemma3_text", false, true), true, (Cast::Keep, false, "gemma3_text overflow"));
        check(&facts("qwen2", false, true), true, (Cast::Keep, false, "qwen2 overflow"));
        check(&facts("llama", true, true), true, (Cast::Keep, false, "checkpoint's dtype"));
        check(&facts("llama", false, false), true, (Cast::Keep, false, "checkpoint's dtype"));
    }

    #[test]
    fn a_given_dtype_wins_everywhere() {
        for device in [Device::Cpu, Device::Gpu] {
            let check = |asked, wanted| check(asked, device, &facts("gemma", true, true), false, wanted);
            check(Precision::Native, (Cast::Keep, false, "checkpoint's dtype"));
            check(Precision::F16, (Cast::To(Dtype::Float16), false, "f16"));
            check(Precision::Bf16, (Cast::To(Dtype::Bfloat16), false, "bf16"));
        }
    }

    #[test]
    fn integers_are_never_cast() {
        let codes = Array::from_u32(&[1, 2], &[2]).unwrap();
        let policy = Policy { cast: Cast::To(Dtype::Float32), unpack: true, line: String::new() };
        assert_eq!(policy.cast(&codes).unwrap().dtype(), Dtype::Uint32);
        let halved = Policy { cast: Cast::HalveBf16, ..policy };
        let wide = Array::from_f32(&[1.0], &[1]).unwrap();
        assert_eq!(halved.cast(&wide).unwrap().dtype(), Dtype::Float32);
        assert_eq!(halved.cast(&wide.cast(Dtype::Bfloat16).unwrap()).unwrap().dtype(), Dtype::Float16);
    }
}
