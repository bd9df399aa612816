//! [`Family`]: the properties of a `model_type`. This table is the only place that lists model types; the planner, the
//! dtype policy and the models ask it. A type that it does not list is [`Family::of`]'s default row: its checkpoints
//! can be edited, but not run.

/// How a family stores its norm weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormOffset {
    /// A stored w multiplies by w.
    None,
    /// A stored w multiplies by 1 + w.
    One,
    /// A stored w multiplies by 1 + w in `PyTorch`'s checkpoints (`format: pt`); MLX's converter stores 1 + w itself.
    OneUnlessConverted,
}

/// The code that runs a family: the file of the same name in `model`, built by `model::registry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    Gemma2,
    Gemma3Text,
    Granite,
    Llama,
    Mixtral,
    Olmo2,
    Phi3,
    Qwen2,
    Qwen3,
    Qwen3Moe,
    Smollm3,
}

/// Values of `config.json` that a family's own configuration class fills in when the file leaves them out, as
/// published conversions of Gemma 3 do. `None`: the file must have them.
#[derive(Debug, Clone, Copy)]
pub struct SizeDefaults {
    /// `num_attention_heads`.
    pub heads: Option<u64>,
    /// `num_key_value_heads`; `None`: as many as `heads`.
    pub kv_heads: Option<u64>,
    /// `head_dim`.
    pub head_dim: Option<u64>,
    /// `hidden_size`.
    pub hidden_size: Option<u64>,
    /// `intermediate_size`.
    pub intermediate_size: Option<u64>,
    /// `num_hidden_layers`.
    pub layers: Option<u64>,
    /// `vocab_size`.
    pub vocabulary: Option<u64>,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by itself")]
pub struct Family {
    /// The `model_type`s of the text model that belong to the family.
    pub model_types: &'static [&'static str],
    /// What runs it; `None` where its checkpoints can only be edited.
    pub architecture: Option<Architecture>,
    /// How norm weights are stored.
    pub norm_offset: NormOffset,
    /// Whether the rows of `qkv_proj` are known to be q, k, v and those of `gate_up_proj` gate, up.
    pub has_fused_projections: bool,
    /// Whether `q_proj` holds a gate beside each head's query.
    pub has_gated_query: bool,
    /// Whether activations stay within what f16 can hold.
    pub is_f16_safe: bool,
    /// Whether `sliding_window` applies to every layer unless `layer_types` says otherwise.
    pub slides_everywhere: bool,
    /// Sizes that `config.json` may leave out.
    pub defaults: SizeDefaults,
}

impl Family {
    /// The family of a text model's `model_type`.
    #[must_use]
    pub fn of(model_type: &str) -> &'static Self {
        FAMILIES.iter().find(|family| family.model_types.contains(&model_type)).unwrap_or(&UNKNOWN)
    }

    /// Every `model_type` that can be run.
    pub fn supported_types() -> impl Iterator<Item = &'static str> {
        let supported = FAMILIES.iter().filter(|family| family.architecture.is_some());
        supported.flat_map(|family| family.model_types).copied()
    }

    /// Whether a norm weight w of a checkpoint in this `format` (`__metadata__.format`) multiplies by 1 + w.
    #[must_use]
    pub fn adds_one_to_norms(&self, format: Option<&str>) -> bool {
        match self.norm_offset {
            NormOffset::None => false,
            NormOffset::One => true,
            NormOffset::OneUnlessConverted => format == Some("pt"),
        }
    }
}

const NO_DEFAULTS: SizeDefaults = SizeDefaults {
    heads: None,
    kv_heads: None,
    head_dim: None,
    hidden_size: None,
    intermediate_size: None,
    layers: None,
    vocabulary: None,
};

const fn sizes(heads: u64, hidden_size: u64, intermediate_size: u64) -> SizeDefaults {
    SizeDefaults {
        heads: Some(heads),
        hidden_size: Some(hidden_size),
        intermediate_size: Some(intermediate_size),
        ..NO_DEFAULTS
    }
}

/// A `model_type` that no row lists.
static UNKNOWN: Family = plain(&[], None, NO_DEFAULTS);

/// A family without peculiarities.
const fn plain(
    model_types: &'static [&'static str],
    architecture: Option<Architecture>,
    defaults: SizeDefaults,
) -> Family {
    Family {
        model_types,
        architecture,
        norm_offset: NormOffset::None,
        has_fused_projections: false,
        has_gated_query: false,
        is_f16_safe: true,
        slides_everywhere: false,
        defaults,
    }
}

const fn gemma(
    model_types: &'static [&'static str],
    architecture: Option<Architecture>,
    defaults: SizeDefaults,
) -> Family {
    let family = plain(model_types, architecture, defaults);
    Family { norm_offset: NormOffset::One, is_f16_safe: false, ..family }
}

const GEMMA2_SIZES: SizeDefaults =
    SizeDefaults { kv_heads: Some(4), head_dim: Some(256), ..sizes(8, 2304, 9216) };

const MISTRAL_SIZES: SizeDefaults = SizeDefaults { kv_heads: Some(8), ..sizes(32, 4096, 14336) };

static FAMILIES: [Family; 20] = [
    gemma(
        &["gemma"],
        None,
        SizeDefaults { kv_heads: Some(16), head_dim: Some(256), ..sizes(16, 3072, 24576) },
    ),
    gemma(&["gemma2"], Some(Architecture::Gemma2), GEMMA2_SIZES),
    gemma(
        &["gemma3_text", "gemma3"],
        Some(Architecture::Gemma3Text),
        SizeDefaults { layers: Some(26), vocabulary: Some(262_208), ..GEMMA2_SIZES },
    ),
    gemma(&["paligemma", "recurrent_gemma"], None, NO_DEFAULTS),
    plain(&["granite"], Some(Architecture::Granite), sizes(32, 4096, 11008)),
    plain(&["llama"], Some(Architecture::Llama), SizeDefaults { layers: Some(32), ..sizes(32, 4096, 11008) }),
    plain(&["llava"], Some(Architecture::Llama), NO_DEFAULTS),
    Family {
        slides_everywhere: true,
        ..plain(&["mistral"], Some(Architecture::Llama), SizeDefaults { layers: Some(32), ..MISTRAL_SIZES })
    },
    Family { slides_everywhere: true, ..plain(&["mistral3"], Some(Architecture::Llama), NO_DEFAULTS) },
    Family { slides_everywhere: true, ..plain(&["mixtral"], Some(Architecture::Mixtral), MISTRAL_SIZES) },
    plain(&["olmo2"], Some(Architecture::Olmo2), sizes(32, 4096, 11008)),
    Family {
        has_fused_projections: true,
        slides_everywhere: true,
        ..plain(&["phi3"], Some(Architecture::Phi3), sizes(32, 3072, 8192))
    },
    Family { is_f16_safe: false, ..plain(&["qwen2"], Some(Architecture::Qwen2), sizes(32, 4096, 22016)) },
    Family {
        is_f16_safe: false,
        ..plain(
            &["qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"],
            Some(Architecture::Qwen2),
            SizeDefaults { kv_heads: Some(8), ..sizes(64, 8192, 29568) },
        )
    },
    plain(
        &["qwen3"],
        Some(Architecture::Qwen3),
        SizeDefaults { head_dim: Some(128), ..sizes(32, 4096, 22016) },
    ),
    plain(&["qwen3_vl", "qwen3_vl_text"], Some(Architecture::Qwen3), NO_DEFAULTS),
    plain(
        &["qwen3_moe"],
        Some(Architecture::Qwen3Moe),
        SizeDefaults { kv_heads: Some(4), ..sizes(32, 2048, 6144) },
    ),
    Family {
        norm_offset: NormOffset::OneUnlessConverted,
        has_gated_query: true,
        ..plain(&["qwen3_next", "qwen3_next_text"], None, NO_DEFAULTS)
    },
    Family {
        norm_offset: NormOffset::OneUnlessConverted,
        has_gated_query: true,
        ..plain(&["qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"], None, NO_DEFAULTS)
    },
    plain(
        &["smollm3"],
        Some(Architecture::Smollm3),
        SizeDefaults { kv_heads: Some(4), ..sizes(16, 2048, 11008) },
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_model_type_belongs_to_one_family() {
        let all: Vec<&str> = FAMILIES.iter().flat_map(|family| family.model_types).copied().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(Family::of("unheard_of").model_types.is_empty());
    }

    #[test]
    fn converted_qwen_hybrids_have_plain_norms() {
        let adds_one = |model_type, format| Family::of(model_type).adds_one_to_norms(format);
        assert!(adds_one("qwen3_next", Some("pt")));
        assert!(!adds_one("qwen3_next", Some("mlx")));
        assert!(adds_one("gemma2", None));
        assert!(!adds_one("llama", None));
    }
}
