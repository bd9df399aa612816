//! [`packing`]: how a module's weight is packed, according to its neighbours in the index.

use super::AffineFormat;
use super::affine::{AffineSet, product, settle};
use super::{Dtype, ModelConfig, Origin, TensorId, TensorIndex, TensorInfo, is_dense_float};

/// The name of a mode of small floats that the configuration does not name.
pub(crate) const UNNAMED_FLOATS: &str = "MX scales (U8)";

/// How a module's weight is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Packing {
    /// A plain tensor.
    Dense,
    /// A complete, consistent affine set.
    Affine(AffineSet),
    /// Packed, but members are missing or disagree; with the reason.
    Incomplete(String),
    /// Packed by another method than affine; with its name (`mxfp4`, `AWQ`, `FP8 block scales`, …).
    Foreign(String),
}

/// How the module that a tensor belongs to is packed. Any member of a set will do.
///
/// A linear `.bias` is not a member: it is `Dense` beside packed weights too.
#[must_use]
pub(crate) fn packing(index: &TensorIndex, config: &ModelConfig, id: TensorId) -> Packing {
    let (key, info) = &index[id];
    let Some((module, suffix)) = key.as_str().rsplit_once('.') else {
        return Packing::Dense;
    };
    let here = Module { index, config, id, path: module };
    match suffix {
        "weight" => here.of_weight(info),
        "scales" | "biases" => match here.member("weight") {
            Some(weight) => packing(index, config, weight),
            None => here.without_weight(),
        },
        _ => here.foreign_member(suffix).map_or(Packing::Dense, Packing::Foreign),
    }
}

/// A module in the index.
struct Module<'a> {
    index: &'a TensorIndex,
    config: &'a ModelConfig,
    /// One of its members.
    id: TensorId,
    path: &'a str,
}

impl<'a> Module<'a> {
    fn member(&self, suffix: &str) -> Option<TensorId> {
        self.index.sibling(self.id, self.path, suffix)
    }

    fn has(&self, suffix: &str) -> bool {
        self.member(suffix).is_some()
    }

    fn info(&self, id: TensorId) -> &'a TensorInfo {
        &self.index[id].1
    }

    fn of_weight(&self, weight: &TensorInfo) -> Packing {
        match (weight.dtype, self.member("scales")) {
            (Dtype::U32, Some(scales)) => self.of_codes(weight, scales),
            (Dtype::U32, None) if self.has("biases") => self.incomplete("has `.biases` but no `.scales`"),
            (dtype, Some(_)) if is_dense_float(dtype) => {
                self.incomplete(&format!("has `.scales`, but its `.weight` is {dtype} and not U32 codes"))
            }
            (dtype, None) if is_dense_float(dtype) => Packing::Dense,
            _ => match self.foreign_weight(weight) {
                Some(name) => Packing::Foreign(name),
                None => Packing::Dense,
            },
        }
    }

    /// U32 codes with scales: affine, unless it is one of MLX's other modes.
    fn of_codes(&self, codes: &TensorInfo, scales_at: TensorId) -> Packing {
        let scales = self.info(scales_at);
        let biases = self.member("biases").map(|at| (at, self.info(at)));
        let mode = self.config.quantization.as_ref().and_then(|q| q.mode_of(self.settings_path()));
        match (biases, mode) {
            (None, Some(mode @ ("mxfp4" | "mxfp8" | "nvfp4"))) => Packing::Foreign(mode.into()),
            (_, mode) if scales.dtype == Dtype::U8 => {
                Packing::Foreign(mode.filter(|mode| *mode != "affine").unwrap_or(UNNAMED_FLOATS).into())
            }
            (None, _) => self.incomplete("has `.scales` but no `.biases`"),
            (Some((biases_at, biases)), _) => match product(codes, scales, biases) {
                Err(why) => self.incomplete(&why),
                Ok(product) => Packing::Affine(AffineSet {
                    module: self.path.to_owned(),
                    codes: self.member("weight").unwrap_or(self.id),
                    scales: scales_at,
                    biases: biases_at,
                    format: self.format(product, scales),
                }),
            },
        }
    }

    fn without_weight(&self) -> Packing {
        if self.has("qweight") {
            return Packing::Foreign(self.method("AWQ or GPTQ"));
        }
        match (self.has("scales"), self.has("biases")) {
            (true, true) => self.incomplete("has `.scales` and `.biases` but no `.weight`"),
            (true, false) if self.config.quantization.is_some() => {
                self.incomplete("has `.scales` but no `.weight`")
            }
            (false, true) if self.config.quantization.is_some() => {
                self.incomplete("has `.biases` but no `.weight`")
            }
            _ => Packing::Dense,
        }
    }

    fn incomplete(&self, why: &str) -> Packing {
        Packing::Incomplete(format!("`{}` {why}", self.path))
    }

    /// The foreign format of a weight that is neither float nor U32 codes.
    fn foreign_weight(&self, weight: &TensorInfo) -> Option<String> {
        if self.has("weight_scale_inv") || self.has("weight_scale") || self.has("scales") {
            return Some(match weight.dtype {
                Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::F8_E4M3FNUZ | Dtype::F8_E5M2FNUZ => {
                    "FP8 with scales".into()
                }
                dtype => self.method(&format!("{dtype} with scales")),
            });
        }
        let beneath = self.index.with_prefix(&format!("{}.weight.", self.path));
        let bitsandbytes = self.has("SCB")
            || self.index.entries()[beneath].iter().any(|(key, _)| is_bitsandbytes(key.suffix()));
        bitsandbytes.then(|| "bitsandbytes".into())
    }

    /// The foreign format of a member that is not `.weight`, `.scales` or `.biases`.
    fn foreign_member(&self, suffix: &str) -> Option<String> {
        match suffix {
            "qweight" | "qzeros" | "g_idx" => self.has("qweight").then(|| self.method("AWQ or GPTQ")),
            "weight_packed" | "weight_shape" | "weight_zero_point" => {
                self.has("weight_packed").then(|| self.method("compressed-tensors"))
            }
            "weight_scale_inv" | "weight_scale" | "weight_scale_2" | "input_scale" | "SCB" => {
                if self.has("weight_packed") {
                    return Some(self.method("compressed-tensors"));
                }
                self.member("weight").and_then(|at| match packing(self.index, self.config, at) {
                    Packing::Foreign(name) => Some(name),
                    _ => None,
                })
            }
            _ if is_bitsandbytes(suffix) && self.path.ends_with(".weight") => Some("bitsandbytes".into()),
            _ => {
                let pair = [("_blocks", "_scales"), ("_scales", "_blocks")];
                let partner = pair
                    .iter()
                    .find_map(|(mine, theirs)| Some(format!("{}{theirs}", suffix.strip_suffix(mine)?)));
                partner.filter(|partner| self.has(partner)).map(|_| self.method("MXFP4 blocks and scales"))
            }
        }
    }

    /// The name of a foreign method in the configuration, else ours.
    fn method(&self, otherwise: &str) -> String {
        let mode = self.config.quantization.as_ref().and_then(|quantization| quantization.mode.as_deref());
        match mode {
            Some("awq") => "AWQ".into(),
            Some("gptq") => "GPTQ".into(),
            Some(mode) if mode != "affine" => mode.to_owned(),
            _ => otherwise.to_owned(),
        }
    }

    /// The module that config.json would name: a tied head is quantized as its embedding.
    fn settings_path(&self) -> &'a str {
        match &self.info(self.id).origin {
            Origin::Tied(key) => key.stem(),
            Origin::Stored { .. } => self.path,
        }
    }

    fn format(&self, product: u64, scales: &TensorInfo) -> Option<AffineFormat> {
        let groups = *scales.shape.last()? as u64;
        let quantization = self.config.quantization.as_ref();
        let said = quantization.and_then(|quantization| quantization.format_of(self.settings_path()));
        let (key, _) = &self.index[self.id];
        settle(product, groups, said, key, self.config)
    }
}

fn is_bitsandbytes(suffix: &str) -> bool {
    matches!(suffix, "absmax" | "quant_map" | "nested_absmax" | "nested_quant_map")
        || suffix.starts_with("bitsandbytes__")
}

#[cfg(test)]
mod tests;
