//! [`Quantization`]: the quantization section of `config.json`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The quantization section of `config.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quantization {
    /// `affine` when absent; `mxfp4`, `mxfp8`, `nvfp4`, or a foreign method's name (`awq`, `gptq`, `fp8`, …).
    pub mode: Option<String>,
    /// Default bits.
    pub bits: Option<u64>,
    /// Default group size.
    pub group_size: Option<u64>,
    /// Per module path (without `.weight`): `None` is `false`, not quantized.
    pub overrides: BTreeMap<String, Option<ModuleQuantization>>,
}

/// One module's own quantization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleQuantization {
    /// Mode, when it differs.
    pub mode: Option<String>,
    /// Bits.
    pub bits: Option<u64>,
    /// Group size.
    pub group_size: Option<u64>,
}

/// Bits (2, 3, 4, 5, 6, 8) and group size (32, 64, 128).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineFormat {
    /// Bits per code.
    pub bits: u64,
    /// Elements per group.
    pub group_size: u64,
}

impl Quantization {
    /// Reads the section. Entries for modules of foreign methods (`quant_method`) have other forms and are not read.
    pub(super) fn from_json(json: &Map<String, Value>) -> Self {
        let mode = text(json, "mode").or_else(|| text(json, "quant_method"));
        let foreign = json.get("quant_method").is_some_and(Value::is_string);
        let module = |(name, value): (&String, &Value)| {
            let name = name.strip_suffix(".weight").unwrap_or(name).to_owned();
            match value {
                Value::Bool(false) => Some((name, None)),
                Value::Object(json) => Some((
                    name,
                    Some(ModuleQuantization {
                        mode: text(json, "mode"),
                        bits: number(json, "bits"),
                        group_size: number(json, "group_size"),
                    }),
                )),
                _ => None,
            }
        };
        let overrides = if foreign { BTreeMap::new() } else { json.iter().filter_map(module).collect() };
        Self { mode, bits: number(json, "bits"), group_size: number(json, "group_size"), overrides }
    }

    /// The mode of a module; `None` is affine.
    #[must_use]
    pub fn mode_of(&self, module: &str) -> Option<&str> {
        let own = self.overrides.get(module).and_then(|module| module.as_ref()?.mode.as_deref());
        own.or(self.mode.as_deref())
    }

    /// Bits and group size of a module: its own if given, else the defaults.
    #[must_use]
    pub fn format_of(&self, module: &str) -> Option<AffineFormat> {
        let own = match self.overrides.get(module) {
            Some(None) => return None,
            Some(Some(own)) => own.clone(),
            None => ModuleQuantization::default(),
        };
        Some(AffineFormat { bits: own.bits.or(self.bits)?, group_size: own.group_size.or(self.group_size)? })
    }
}

fn text(json: &Map<String, Value>, name: &str) -> Option<String> {
    json.get(name).and_then(Value::as_str).map(str::to_ascii_lowercase)
}

fn number(json: &Map<String, Value>, name: &str) -> Option<u64> {
    json.get(name).and_then(Value::as_u64)
}
