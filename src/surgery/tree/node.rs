//! [`Node`]: a value as it is written, with its place.

use super::super::spanned::Spanned;

/// A value as it is written, its place, and the alias or merge key that it comes through.
pub(in crate::surgery) type Node = Spanned<Value>;

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::surgery) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A plain whole number within 64 bits.
    Int(i128),
    /// Any other plain number.
    Float(f64),
    /// A quoted scalar, or a plain one that is nothing else.
    Text(String),
    /// A scalar with the tag `!!binary`.
    Binary,
    /// A sequence.
    List(Vec<Node>),
    /// A mapping: pairs in file order, repeated keys included.
    Map(Vec<(Node, Node)>),
}

impl Value {
    /// The kind of value, with its article.
    pub(in crate::surgery) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::Binary => "binary data",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// A span that shows something. A block mapping or list has an empty one, so its first entry represents it.
    pub(in crate::surgery) fn visible(&self) -> Spanned<()> {
        let first = match &self.value {
            Value::Map(pairs) => pairs.first().map(|(key, _)| key),
            Value::List(items) => items.first(),
            _ => None,
        };
        match first {
            Some(first) if self.span.is_empty() => first.visible(),
            _ => self.with(()),
        }
    }
}
