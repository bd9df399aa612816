//! Which weights answer: [`Surgery`] is known before anything is loaded, [`Identity`] afterwards.

use serde::Serialize;
use serde_json::{Value, json};

use crate::load::Loaded;
use crate::plan::Plan;

/// MLX's version, that of the bindings in Cargo.toml.
const MLX: &str = "0.32.2";

/// A surgery, as its plan has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Surgery {
    /// Whether there is a surgery file.
    pub active: bool,
    /// The file as it was named.
    pub file: Option<String>,
    /// The plan's digest; none where the plan has no effect.
    pub digest: Option<String>,
    /// SHA-256 over the edited tensors; none before they are computed, and where there are none.
    pub weights_sha256: Option<String>,
    /// Operations in the file.
    pub operations: usize,
    /// Tensors that are edited.
    pub tensors_edited: usize,
    /// Weights of other checkpoints that are used, by path.
    pub donors: Vec<String>,
}

impl Surgery {
    /// What a plan tells.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self {
            active: plan.file().is_some(),
            file: plan.file().map(|file| file.display().to_string()),
            digest: plan.digest().map(str::to_owned),
            weights_sha256: None,
            operations: plan.summary().operations,
            tensors_edited: plan.summary().tensors_edited,
            donors: plan.donors().iter().map(|donor| donor.written.clone()).collect(),
        }
    }

    /// The value of `x-mlxcel-surgery`: the digest, or `none`.
    #[must_use]
    pub fn mark(&self) -> &str {
        self.digest.as_deref().unwrap_or("none")
    }

    /// What `/health` tells.
    #[must_use]
    pub fn health(&self) -> Value {
        json!({"active": self.active, "digest": self.digest})
    }
}

/// A model that answers under a name.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name.
    pub id: String,
    /// What was done to its weights.
    pub surgery: Surgery,
    /// `system_fingerprint` of its answers.
    pub fingerprint: String,
    /// `meta` of its entry in `/v1/models`.
    pub meta: Value,
}

impl Identity {
    /// The identity of a loaded model.
    #[must_use]
    pub fn new(id: String, loaded: &Loaded, context: Option<usize>) -> Self {
        let surgery =
            Surgery { weights_sha256: loaded.report.weights_sha256.clone(), ..Surgery::of(&loaded.plan) };
        Self::of(id, surgery, loaded, context)
    }

    /// The identity of the same model without surgery: `<id>@base`.
    #[must_use]
    pub fn base(id: &str, loaded: &Loaded, context: Option<usize>) -> Self {
        Self::of(format!("{id}@base"), Surgery::default(), loaded, context)
    }

    fn of(id: String, surgery: Surgery, loaded: &Loaded, context: Option<usize>) -> Self {
        let dtype = loaded.policy.name();
        let meta = json!({
            "dtype_policy": dtype,
            "n_ctx": context,
            "n_vocab": loaded.model.vocabulary(),
            "surgery": surgery,
        });
        Self { fingerprint: fingerprint(dtype, surgery.digest.as_deref()), id, surgery, meta }
    }
}

/// Differs exactly when the dtype policy or the effective plan does (or the program).
fn fingerprint(dtype: &str, digest: Option<&str>) -> String {
    let digest = digest.map(|digest| digest.strip_prefix("sha256:").unwrap_or(digest));
    let mark = digest.map_or("none", |digest| digest.get(..12).unwrap_or(digest));
    format!("mlxcel-{}-mlx{MLX}-{dtype}-s:{mark}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_tells_the_surgery_and_the_dtype() {
        let version = env!("CARGO_PKG_VERSION");
        let digest = "sha256:0123456789abcdef";
        assert_eq!(
            fingerprint("f32", Some(digest)),
            format!("mlxcel-{version}-mlx0.32.2-f32-s:0123456789ab")
        );
        assert_eq!(fingerprint("bf16", None), format!("mlxcel-{version}-mlx0.32.2-bf16-s:none"));
    }

    #[test]
    fn the_version_of_mlx_is_that_of_the_pinned_bindings() {
        let manifest = include_str!("../../Cargo.toml");
        assert!(manifest.contains(&format!("are bindings of MLX {MLX}")));
    }
}
