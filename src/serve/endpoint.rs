//! [`Endpoint`]: which of the two generating endpoints a request came to, and the names that its responses carry.

/// An endpoint that generates text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `/v1/completions`: continues a text.
    Completion,
    /// `/v1/chat/completions`: answers a conversation.
    Chat,
}

impl Endpoint {
    /// `object` of a whole response.
    pub(super) fn object(self) -> &'static str {
        match self {
            Self::Completion => "text_completion",
            Self::Chat => "chat.completion",
        }
    }

    /// `object` of a chunk of a stream.
    pub(super) fn chunk_object(self) -> &'static str {
        match self {
            Self::Completion => "text_completion",
            Self::Chat => "chat.completion.chunk",
        }
    }

    /// What response ids begin with.
    pub(super) fn id_prefix(self) -> &'static str {
        match self {
            Self::Completion => "cmpl",
            Self::Chat => "chatcmpl",
        }
    }
}
