//! [`Role`]: which projection a key is.

/// Which part of a transformer block a module is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Query projection.
    Query,
    /// Key projection.
    KeyProjection,
    /// Value projection.
    Value,
    /// q|k|v in one matrix.
    FusedQkv,
    /// Attention output projection.
    Output,
    /// Norm on queries or keys.
    QueryNorm,
    /// MLP gate (mixtral `w1`).
    Gate,
    /// MLP up (mixtral `w3`).
    Up,
    /// gate|up in one matrix.
    FusedGateUp,
    /// MLP down (mixtral `w2`).
    Down,
    /// Any norm.
    Norm,
    /// Token embedding.
    Embedding,
    /// Language-model head.
    Head,
    /// Mixture-of-experts router.
    Router,
    /// Anything else.
    Other,
}
