//! How responses identify their weights: [`SurgeryInfo`] is known from the plan, [`ModelIdentity`] after loading.

use serde::Serialize;
use serde_json::{Value, json};

use crate::load::Loaded;
use crate::plan::Plan;

/// MLX's version, that of the bindings pinned in Cargo.toml.
const MLX_VERSION: &str = "0.32.2";

/// A surgery as its plan describes it: `meta.surgery` of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SurgeryInfo {
    /// Whether there is a surgery file.
    pub active: bool,
    /// The file's path as it was given.
    pub file: Option<String>,
    /// The plan's digest; `None` if the plan has no effect.
    pub digest: Option<String>,
    /// SHA-256 of the edited tensors; `None` before loading and if no tensor is edited.
    pub weights_sha256: Option<String>,
    /// Number of operations in the file.
    pub operations: usize,
    /// Number of edited tensors.
    pub tensors_edited: usize,
    /// Paths of the donors as they were given.
    pub donors: Vec<String>,
}

impl SurgeryInfo {
    /// Describes a plan.
    #[must_use]
    pub(crate) fn of(plan: &Plan) -> Self {
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

    /// The value of the header `x-mlxcel-surgery`: the digest or `none`.
    #[must_use]
    pub(crate) fn header_value(&self) -> &str {
        self.digest.as_deref().unwrap_or("none")
    }

    /// `surgery` of `/health`.
    #[must_use]
    pub(crate) fn health(&self) -> Value {
        json!({"active": self.active, "digest": self.digest})
    }
}

/// A served model.
#[derive(Debug, Clone)]
pub(crate) struct ModelIdentity {
    /// The id by which requests name it.
    pub id: String,
    /// The surgery on its weights.
    pub surgery: SurgeryInfo,
    /// `system_fingerprint` of its responses.
    pub fingerprint: String,
    /// `meta` of its entry in `/v1/models`.
    pub meta: Value,
}

impl ModelIdentity {
    /// The identity of a loaded model.
    #[must_use]
    pub(crate) fn new(id: String, loaded: &Loaded, context: Option<usize>) -> Self {
        let surgery = SurgeryInfo {
            weights_sha256: loaded.report.weights_sha256.clone(),
            ..SurgeryInfo::of(&loaded.plan)
        };
        Self::of(id, surgery, loaded, context)
    }

    /// The identity of the model without surgery: `<id>@base`.
    #[must_use]
    pub(crate) fn base(id: &str, loaded: &Loaded, context: Option<usize>) -> Self {
        Self::of(format!("{id}@base"), SurgeryInfo::default(), loaded, context)
    }

    fn of(id: String, surgery: SurgeryInfo, loaded: &Loaded, context: Option<usize>) -> Self {
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

/// Differs exactly when the dtype policy, the effective plan, or the version of mlxcel or MLX differs.
fn fingerprint(dtype: &str, digest: Option<&str>) -> String {
    let digest = digest.map(|digest| digest.strip_prefix("sha256:").unwrap_or(digest));
    let prefix = digest.map_or("none", |digest| digest.get(..12).unwrap_or(digest));
    format!("mlxcel-{}-mlx{MLX_VERSION}-{dtype}-s:{prefix}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_contains_the_digest_and_the_dtype() {
        let version = env!("CARGO_PKG_VERSION");
        let digest = "sha256:0123456789abcdef";
        assert_eq!(
            fingerprint("f32", Some(digest)),
            format!("mlxcel-{version}-mlx0.32.2-f32-s:0123456789ab")
        );
        assert_eq!(fingerprint("bf16", None), format!("mlxcel-{version}-mlx0.32.2-bf16-s:none"));
    }

    #[test]
    fn the_mlx_version_is_that_of_the_pinned_bindings() {
        let manifest = include_str!("../../Cargo.toml");
        assert!(manifest.contains(&format!("are bindings of MLX {MLX_VERSION}")));
    }
}
