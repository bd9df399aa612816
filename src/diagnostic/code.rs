//! The catalogue of codes: one line for each kind of mistake.

use std::fmt;

use super::Severity;

macro_rules! codes {
    ($($severity:ident { $($variant:ident = $name:literal: $summary:literal,)* })*) => {
        /// A kind of mistake. Its full name is `surgery::<name>`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $summary] $variant,)*)* }

        impl Code {
            /// Every code: errors, then warnings, then advice.
            pub const ALL: &[Code] = &[$($(Code::$variant,)*)*];

            /// The name after `surgery::`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($(Code::$variant => $name,)*)* }
            }

            /// What the code means, in one line.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $($(Code::$variant => $summary,)*)* }
            }

            /// How much it weighs.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $($(Code::$variant => Severity::$severity,)*)* }
            }
        }
    };
}

impl fmt::Display for Code {
    /// The full name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "surgery::{}", self.name())
    }
}

impl Code {
    /// The code of a name, with or without `surgery::`.
    #[must_use]
    pub fn named(name: &str) -> Option<Code> {
        let name = name.strip_prefix("surgery::").unwrap_or(name);
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

codes! {
    Error {
        Syntax = "syntax": "the file is not valid YAML",
        FileUnreadable = "file_unreadable": "the surgery file cannot be read",
        UnsupportedVersion = "unsupported_version": "`version` is not the integer 1",
        UnknownOperation = "unknown_operation": "`op` names no operation",
        MissingField = "missing_field": "a required field is absent or null",
        UnexpectedField = "unexpected_field": "the field belongs to another operation or granularity",
        UnknownField = "unknown_field": "no operation has such a field",
        BadValue = "bad_value": "the value has the wrong type or is not one of the allowed words",
        NotFinite = "not_finite": "a number is NaN, infinite, or too large for the tensor's working precision",
        RatioOutOfRange = "ratio_out_of_range": "`ratio` is not between 0 and 1",
        EmptyIds = "empty_ids": "the list of ids is empty",
        BadGlob = "bad_glob": "the pattern is not a valid glob",
        NoMatch = "no_match": "the pattern matches no tensor",
        TooManyEdits = "too_many_edits": "the operations together reach more tensors than one file may",
        WildcardMismatch = "wildcard_mismatch": "`pattern` and `source_key` have different numbers of `*`",
        DonorNotFound = "donor_not_found": "the donor does not exist",
        DonorUnreadable = "donor_unreadable": "the donor is not a readable safetensors checkpoint",
        DonorKeyMissing = "donor_key_missing": "the donor lacks a tensor that the operation needs",
        ShapeMismatch = "shape_mismatch": "base and donor tensor differ in shape",
        DtypeMismatch = "dtype_mismatch": "base and donor tensor differ in dtype",
        PackedCodes = "packed_codes": "arithmetic on packed or integer tensors",
        UnsupportedQuantization = "unsupported_quantization": "the tensor's quantization cannot be operated on",
        IncompleteAffineSet = "incomplete_affine_set": "codes, scales and biases are not complete or disagree",
        MisalignedRegion = "misaligned_region": "the region to zero does not fall on quantization groups",
        UnsupportedLayout = "unsupported_layout": "the module's layout is not known well enough to prune it",
        LayerOutOfRange = "layer_out_of_range": "a layer id does not exist or reaches nothing",
        HeadOutOfRange = "head_out_of_range": "a head id does not exist or reaches nothing",
        ChannelOutOfRange = "channel_out_of_range": "a channel id does not exist or reaches nothing",
        NoPrunableTensor = "no_prunable_tensor": "no matched tensor can be pruned at this granularity",
        QuantizedDownProj = "quantized_down_proj": "one channel of a quantized `down_proj` is narrower than a group",
        ModelUnreadable = "model_unreadable": "the model directory is not a readable checkpoint",
        BadShardIndex = "bad_shard_index": "the index file and the shards disagree",
        NotFiniteResult = "not_finite_result": "finite inputs gave a result that is not finite",
        DonorChanged = "donor_changed": "a file changed between planning and executing",
        OutputExists = "output_exists": "the output directory exists already",
        OutputUnwritable = "output_unwritable": "the export cannot be written",
        UnsupportedModel = "unsupported_model": "no model family answers to this `model_type`",
        TensorMissing = "tensor_missing": "the model needs a tensor that the checkpoint lacks",
        TensorLeftOver = "tensor_left_over": "the checkpoint has a tensor that the model does not use",
    }
    Warning {
        TiedEmbedding = "tied_embedding": "only one side of a tied embedding is edited",
        SeveralStacks = "several_stacks": "layer ids reach more than one stack of layers",
        ResidualOrSharedKv = "residual_or_shared_kv": "a pruned layer leaves a residual scalar or shared K/V behind",
        HalfPrunedHead = "half_pruned_head": "q is pruned without o: the head still writes",
        CoupledHeads = "coupled_heads": "a norm couples the pruned head with the others",
        DonorFormat = "donor_format": "base and donor were written by different frameworks",
        DonorConfig = "donor_config": "a donor's `config.json` cannot be read",
        UnlistedTensor = "unlisted_tensor": "a shard holds a tensor that the index does not list",
        TrailingBytes = "trailing_bytes": "bytes follow the last tensor",
        LostDeltas = "lost_deltas": "most changes were lost to rounding",
        Underflow = "underflow": "scales became subnormal or zero",
    }
    Advice {
        KvSkipped = "kv_skipped": "K and V projections are left alone",
        PartialAffineSet = "partial_affine_set": "only scales or only biases of affine sets are scaled",
        Overwritten = "overwritten": "a later operation overwrites this edit",
        NoEffect = "no_effect": "the operation changes nothing",
        DeadAlternative = "dead_alternative": "an alternative of the pattern matches nothing",
        UnreachedDonor = "unreached_donor": "donor tensors that no pattern reaches",
        WholeModel = "whole_model": "`add` adds a whole model, not a difference of two",
        GemmaNormOffset = "gemma_norm_offset": "the family uses a norm weight w as 1 + w",
        DuplicateId = "duplicate_id": "an id is listed twice",
        BiasLeft = "bias_left": "a bias that belongs to the edited tensor is left alone",
        SharedEmbedding = "shared_embedding": "an edit of the embedding is an edit of the head too",
    }
}
