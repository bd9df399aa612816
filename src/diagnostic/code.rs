//! The catalogue of codes: one line for each kind of finding.
//!
//! A full name is `<namespace>::<name>`. The namespace says which input is at fault: `surgery` (the surgery file or a donor
//! that it names), `model` (the model directory, or a checkpoint file that changed), `output` (what is written),
//! `system` (the machine). Names are unique without their namespace, so that scripts can match on them alone.

use std::fmt;

use super::Severity;

macro_rules! codes {
    ($($severity:ident { $($variant:ident = $full_name:literal: $summary:literal,)* })*) => {
        /// A kind of finding. Its full name is `<namespace>::<name>`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $summary] $variant,)*)* }

        impl Code {
            /// Every code: errors, then warnings, then advice.
            pub const ALL: &[Code] = &[$($(Code::$variant,)*)*];

            /// The full name, such as `model::tensor_missing`.
            #[must_use]
            pub fn full_name(self) -> &'static str {
                match self { $($(Code::$variant => $full_name,)*)* }
            }

            /// The meaning in one line.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $($(Code::$variant => $summary,)*)* }
            }

            /// How serious a finding of this kind is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $($(Code::$variant => Severity::$severity,)*)* }
            }
        }
    };
}

/// Names that a code had in the past, and its name now.
const FORMER_NAMES: [(&str, &str); 1] = [("donor_changed", "file_changed")];

/// The namespace that every code had in the past.
const FORMER_NAMESPACE: &str = "surgery";

impl fmt::Display for Code {
    /// The full name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.full_name())
    }
}

impl Code {
    /// The name without its namespace.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.split().1
    }

    /// The namespace: `surgery`, `model`, `output` or `system`.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        self.split().0
    }

    /// The code with this name: full, without its namespace, or as it was called in the past.
    #[must_use]
    pub fn named(name: &str) -> Option<Code> {
        let (namespace, name) = match name.split_once("::") {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, name),
        };
        let name = FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, now)| now);
        let code = Code::ALL.iter().copied().find(|code| code.name() == name)?;
        let is_its_namespace =
            |namespace: &str| namespace == code.namespace() || namespace == FORMER_NAMESPACE;
        namespace.is_none_or(is_its_namespace).then_some(code)
    }

    fn split(self) -> (&'static str, &'static str) {
        let full_name = self.full_name();
        full_name.split_once("::").unwrap_or(("", full_name))
    }
}

codes! {
    Error {
        Syntax = "surgery::syntax": "the file is not valid YAML",
        FileUnreadable = "surgery::file_unreadable": "the surgery file cannot be read",
        UnsupportedVersion = "surgery::unsupported_version": "`version` is not the integer 1",
        UnknownOperation = "surgery::unknown_operation": "`op` is not a known operation",
        MissingField = "surgery::missing_field": "a required field is absent or null",
        UnexpectedField = "surgery::unexpected_field": "the field belongs to another operation or granularity",
        UnknownField = "surgery::unknown_field": "no operation has such a field",
        BadValue = "surgery::bad_value": "the value has the wrong type or is not one of the allowed words",
        NotFinite = "surgery::not_finite": "a number is NaN, infinite, or too large for the tensor's working precision",
        RatioOutOfRange = "surgery::ratio_out_of_range": "`ratio` is not between 0 and 1",
        EmptyIds = "surgery::empty_ids": "the list of ids is empty",
        BadGlob = "surgery::bad_glob": "the pattern is not a valid glob",
        NoMatch = "surgery::no_match": "the pattern matches no tensor",
        TooManyEdits = "surgery::too_many_edits": "the operations together exceed the number of edits allowed in one file",
        WildcardMismatch = "surgery::wildcard_mismatch": "`pattern` and `source_key` have different numbers of `*`",
        DonorNotFound = "surgery::donor_not_found": "the donor does not exist",
        DonorUnreadable = "surgery::donor_unreadable": "the donor is not a readable safetensors checkpoint",
        DonorKeyMissing = "surgery::donor_key_missing": "the donor lacks a tensor that the operation needs",
        ShapeMismatch = "surgery::shape_mismatch": "base and donor tensor differ in shape",
        DtypeMismatch = "surgery::dtype_mismatch": "base and donor tensor differ in dtype",
        PackedCodes = "surgery::packed_codes": "arithmetic on packed or integer tensors",
        UnsupportedQuantization = "surgery::unsupported_quantization": "the tensor's quantization is not supported",
        IncompleteAffineSet = "surgery::incomplete_affine_set": "codes, scales and biases are incomplete or disagree",
        MisalignedRegion = "surgery::misaligned_region": "the region to zero is not made of whole quantization groups",
        UnsupportedLayout = "surgery::unsupported_layout": "pruning is not supported for the module's layout",
        LayerOutOfRange = "surgery::layer_out_of_range": "a layer id does not exist or matches no tensor",
        HeadOutOfRange = "surgery::head_out_of_range": "a head id does not exist or matches no tensor",
        ChannelOutOfRange = "surgery::channel_out_of_range": "a channel id does not exist or matches no tensor",
        NoPrunableTensor = "surgery::no_prunable_tensor": "no matched tensor can be pruned at this granularity",
        QuantizedDownProj = "surgery::quantized_down_proj": "one channel of a quantized `down_proj` is narrower than a group",
        ModelUnreadable = "model::model_unreadable": "the model directory is not a readable checkpoint",
        BadShardIndex = "model::bad_shard_index": "the index file and the shards disagree",
        NotFiniteResult = "surgery::not_finite_result": "finite inputs gave a result that is not finite",
        FileChanged = "model::file_changed": "a checkpoint file changed while the program ran",
        OutputExists = "output::output_exists": "the output directory already exists",
        OutputUnwritable = "output::output_unwritable": "the export cannot be written",
        UnsupportedModel = "model::unsupported_model": "the model's family, or a feature of it, is not supported",
        TensorMissing = "model::tensor_missing": "the checkpoint lacks a tensor that the model needs",
        TensorLeftOver = "model::tensor_left_over": "the checkpoint has a tensor that the model does not use",
        OutOfMemory = "system::out_of_memory": "not enough memory",
        LimitExceeded = "system::limit_exceeded": "the model does not fit in a limit of the process",
        MlxFailed = "system::mlx_failed": "MLX failed while loading the model",
    }
    Warning {
        TiedEmbedding = "surgery::tied_embedding": "only one side of a tied embedding is edited",
        SeveralStacks = "surgery::several_stacks": "layer ids match more than one stack of layers",
        ResidualOrSharedKv = "surgery::residual_or_shared_kv": "a pruned layer leaves a residual scalar or shared K/V behind",
        HalfPrunedHead = "surgery::half_pruned_head": "q is pruned without o: the head still contributes",
        CoupledHeads = "surgery::coupled_heads": "a norm couples the pruned head with the others",
        DonorFormat = "surgery::donor_format": "base and donor were written by different frameworks",
        DonorConfig = "surgery::donor_config": "a donor's `config.json` cannot be read",
        UnlistedTensor = "model::unlisted_tensor": "a shard holds a tensor that the index does not list",
        TrailingBytes = "model::trailing_bytes": "bytes follow the last tensor",
        LostDeltas = "surgery::lost_deltas": "most changes were lost to rounding",
        Underflow = "surgery::underflow": "scales became subnormal or zero",
    }
    Advice {
        KvSkipped = "surgery::kv_skipped": "K and V projections are not pruned",
        PartialAffineSet = "surgery::partial_affine_set": "only scales or only biases of affine sets are scaled",
        Overwritten = "surgery::overwritten": "a later operation overwrites this edit",
        NoEffect = "surgery::no_effect": "the operation changes nothing",
        DeadAlternative = "surgery::dead_alternative": "an alternative of the pattern matches nothing",
        UnreachedDonor = "surgery::unreached_donor": "no pattern uses some tensors of a donor",
        WholeModel = "surgery::whole_model": "`add` adds a whole model, not a difference of two",
        GemmaNormOffset = "surgery::gemma_norm_offset": "the family uses a norm weight w as 1 + w",
        DuplicateId = "surgery::duplicate_id": "an id is listed twice",
        BiasLeft = "surgery::bias_left": "the bias of an edited weight is not edited",
        SharedEmbedding = "surgery::shared_embedding": "an edit of the embedding is an edit of the head too",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_without_their_namespace_and_namespaces_are_known() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(matches!(code.namespace(), "surgery" | "model" | "output" | "system"), "{code}");
        }
    }

    #[test]
    fn a_code_is_found_by_its_full_name_its_bare_name_and_its_former_names() {
        for &code in Code::ALL {
            let former = format!("surgery::{}", code.name());
            for name in [code.full_name(), code.name(), &former] {
                assert_eq!(Code::named(name), Some(code), "{name}");
            }
        }
        for name in ["donor_changed", "surgery::donor_changed", "model::file_changed"] {
            assert_eq!(Code::named(name), Some(Code::FileChanged), "{name}");
        }
        for name in ["model::no_match", "model::output_exists", "::no_match", "surgery::", "nothing"] {
            assert_eq!(Code::named(name), None, "{name}");
        }
    }
}
