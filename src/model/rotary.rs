//! Reads rotary positions from `config.json`: `rope_parameters` in newer files, `rope_theta` and `rope_scaling` in older
//! ones.

use serde_json::{Map, Value};

use super::ConfigError;
use super::args::{Args, finite, missing, positive, wrong};
use crate::nn::{RopeSpec, Scaling};

/// The field of the base in older files, and its default.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theta {
    pub(super) name: &'static str,
    pub(super) default: f64,
}

impl Theta {
    /// `rope_theta`, with this default.
    pub(super) fn or(default: f64) -> Self {
        Self { name: "rope_theta", default }
    }
}

/// The rotation of a model that rotates all layers in the same way.
pub(super) fn rope(args: &Args<'_>, head_dim: usize, theta: Theta) -> Result<RopeSpec, ConfigError> {
    let table = match args.object("rope_parameters")? {
        Some(table) => Some(table),
        None => args.object("rope_scaling")?,
    };
    Table { args, table }.lower(head_dim, theta)
}

/// The rotation of the layers of one type. Newer files have a table for each type; in older ones `scaled` says whether
/// `rope_scaling` applies to this type.
pub(super) fn rope_of(
    args: &Args<'_>,
    layer_type: &str,
    head_dim: usize,
    theta: Theta,
    scaled: bool,
) -> Result<RopeSpec, ConfigError> {
    let table = match args.object("rope_parameters")? {
        Some(tables) => match tables.get(layer_type) {
            None | Some(Value::Null) => None,
            Some(Value::Object(table)) => Some(table),
            Some(other) => return Err(wrong(&format!("rope_parameters.{layer_type}"), other, "an object")),
        },
        None if scaled => args.object("rope_scaling")?,
        None => None,
    };
    Table { args, table }.lower(head_dim, theta)
}

struct Table<'a, 'c> {
    args: &'a Args<'c>,
    table: Option<&'c Map<String, Value>>,
}

impl<'c> Table<'_, 'c> {
    fn get(&self, name: &str) -> Option<&'c Value> {
        self.table?.get(name).filter(|value| !value.is_null())
    }

    fn number(&self, name: &str) -> Result<Option<f64>, ConfigError> {
        self.get(name).map(|value| finite(name, value)).transpose()
    }

    fn required(&self, name: &str) -> Result<f64, ConfigError> {
        let number = self.number(name)?.ok_or_else(|| missing(&format!("rope_scaling.{name}")))?;
        positive(name, number)
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, ConfigError> {
        self.get(name)
            .map_or(Ok(default), |value| value.as_bool().ok_or_else(|| wrong(name, value, "true or false")))
    }

    fn lower(&self, head_dim: usize, theta: Theta) -> Result<RopeSpec, ConfigError> {
        let base = match self.number("rope_theta")? {
            Some(base) => base,
            None => self.args.number(theta.name)?.unwrap_or(theta.default),
        };
        let base = positive(theta.name, base)?;
        let dims = self.rotated(head_dim)?;
        let kind = self.get("rope_type").or_else(|| self.get("type"));
        let kind = kind.map(|kind| kind.as_str().ok_or_else(|| wrong("rope_type", kind, "a string")));
        let scaling = match kind.transpose()?.unwrap_or("default") {
            // For text, all axes of multimodal positions have the same position.
            "default" | "mrope" => Scaling::Default,
            "linear" => Scaling::Linear { factor: self.required("factor")? },
            "llama3" => Scaling::Llama3 {
                factor: self.required("factor")?,
                low: self.required("low_freq_factor")?,
                high: self.required("high_freq_factor")?,
                original_context: self.required("original_max_position_embeddings")?,
            },
            "yarn" => self.yarn()?,
            // The name in the first models of this kind.
            "longrope" | "su" => self.long(dims / 2)?,
            other => {
                return Err(ConfigError::UnsupportedRope(other.to_owned()));
            }
        };
        Ok(RopeSpec { head_dim, dims, theta: base, scaling })
    }

    /// Number of rotated dimensions of a head.
    fn rotated(&self, head_dim: usize) -> Result<usize, ConfigError> {
        let name = "partial_rotary_factor";
        let part = match self.number(name)? {
            Some(part) => part,
            None => self.args.number(name)?.unwrap_or(1.0),
        };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "head widths are small, and the share is checked"
        )]
        let dims = if part > 0.0 && part <= 1.0 { (head_dim as f64 * part) as usize } else { 0 };
        if dims == 0 || !dims.is_multiple_of(2) {
            return Err(ConfigError::PartialRotation { share: part, head_dim });
        }
        Ok(dims)
    }

    /// The given factor, or the ratio of the context to the original one.
    fn factor(&self, original_context: f64) -> Result<f64, ConfigError> {
        if let Some(factor) = self.number("factor")? {
            return positive("factor", factor);
        }
        let context = self.args.number("max_position_embeddings")?;
        let context = context.ok_or_else(|| missing("rope_scaling.factor"))?;
        positive("max_position_embeddings", context / original_context)
    }

    fn yarn(&self) -> Result<Scaling, ConfigError> {
        let original_context = match self.number("original_max_position_embeddings")? {
            Some(original) => positive("original_max_position_embeddings", original)?,
            None => self.args.factor("max_position_embeddings", 0.0)?,
        };
        let factor = self.factor(original_context)?;
        let factor_of = |share: f64| if factor <= 1.0 { 1.0 } else { 0.1 * share * factor.ln() + 1.0 };
        let given = |name| Ok::<_, ConfigError>(self.number(name)?.filter(|&number| number != 0.0));
        let attention_factor =
            match (self.number("attention_factor")?, given("mscale")?, given("mscale_all_dim")?) {
                (Some(attention_factor), _, _) => positive("attention_factor", attention_factor)?,
                (None, Some(share), Some(all)) => factor_of(share) / factor_of(all),
                (None, _, _) => factor_of(1.0),
            };
        Ok(Scaling::Yarn {
            factor,
            fast: positive("beta_fast", given("beta_fast")?.unwrap_or(32.0))?,
            slow: positive("beta_slow", given("beta_slow")?.unwrap_or(1.0))?,
            original_context,
            truncate: self.flag("truncate", true)?,
            attention_factor,
        })
    }

    fn long(&self, pairs: usize) -> Result<Scaling, ConfigError> {
        let name = "original_max_position_embeddings";
        let original = match self.number(name)? {
            Some(original) => original,
            None => self.args.number(name)?.ok_or_else(|| missing(name))?,
        };
        let original = positive(name, original)?;
        let factor = self.factor(original)?;
        let attention_factor = match self.number("attention_factor")? {
            Some(attention_factor) => positive("attention_factor", attention_factor)?,
            None if factor <= 1.0 => 1.0,
            None => (1.0 + factor.ln() / original.ln()).sqrt(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating"
        )]
        let original_context = original as usize;
        let (short, long) = (self.factors("short_factor", pairs)?, self.factors("long_factor", pairs)?);
        Ok(Scaling::Long { short, long, original_context, attention_factor })
    }

    /// One factor for each period.
    fn factors(&self, name: &str, pairs: usize) -> Result<Vec<f64>, ConfigError> {
        let value = self.get(name).ok_or_else(|| missing(&format!("rope_scaling.{name}")))?;
        let list = value.as_array().ok_or_else(|| wrong(name, value, "a list of numbers"))?;
        if list.len() != pairs {
            let (name, found) = (name.to_owned(), list.len());
            return Err(ConfigError::Length { name, found, needed: pairs, of: "pairs of dimensions" });
        }
        list.iter().map(|factor| positive(name, finite(name, factor)?)).collect()
    }
}
