//! [`ChatTemplate`]: renders messages to the prompt format that the model was trained on.
//!
//! Templates are Jinja as in transformers: block tags remove their own line, Python's string methods work, and
//! `raise_exception`, `strftime_now` and Python's `tojson` are available. Templates are untrusted programs, so the
//! number of their steps is limited.

mod date;
mod json;

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind};
use serde_json::{Map, Value};

use super::error::Error;
use super::files::{read_bounded, read_json};
use super::tokenizer::Tokenizer;

/// A message: `role`, `content` (a string or a list of parts), and further fields that the template may use.
pub(crate) type Message = Map<String, Value>;

/// Maximum number of template steps: a thousand times what a long conversation needs.
const MAX_STEPS: u64 = 5_000_000;
/// Maximum size of a template file in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Name of the only template in the environment.
const NAME: &str = "chat";

/// A compiled chat template.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    /// The file that contains the template.
    origin: PathBuf,
    /// Whether the template iterates over the parts of a message itself.
    takes_parts: bool,
}

/// What the template gets beside the messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct TemplateInputs {
    /// Tools, as chat requests list them.
    pub tools: Option<Value>,
    /// Additional variables such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

/// A message with text content.
#[must_use]
pub(crate) fn message(role: &str, content: &str) -> Message {
    let mut message = Map::new();
    message.insert("role".to_owned(), role.into());
    message.insert("content".to_owned(), content.into());
    message
}

impl ChatTemplate {
    /// The template in `file` if given, else in `chat_template.jinja`, `tokenizer_config.json` or `chat_template.json`
    /// of the model directory; `None` if there is none.
    ///
    /// # Errors
    /// When a file cannot be read or the template does not compile; the file and line are named.
    pub(crate) fn find(
        dir: &Path,
        tokenizer: &Tokenizer,
        file: Option<&Path>,
    ) -> Result<Option<Self>, Error> {
        let Some((origin, source)) = source(dir, tokenizer, file)? else { return Ok(None) };
        let special = ["bos_token", "eos_token", "unk_token", "pad_token"]
            .into_iter()
            .filter_map(|name| Some((name, tokenizer.named(name)?.to_owned())));
        Self::compile(origin, &source, special).map(Some)
    }

    fn compile(
        origin: PathBuf,
        source: &str,
        special: impl Iterator<Item = (&'static str, String)>,
    ) -> Result<Self, Error> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| template_error(&origin, &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(MAX_STEPS));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", json::tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", date::strftime_now);
        for (name, token) in special {
            environment.add_global(name, token);
        }
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| template_error(&origin, &error))?;
        Ok(Self { environment, origin, takes_parts: iterates_content(source) })
    }

    /// Renders the prompt for these messages, which ends where the assistant's answer begins. The prompt contains its
    /// special tokens, so it must be encoded without adding any.
    ///
    /// # Errors
    /// When the template rejects the messages or takes too many steps.
    pub(crate) fn render(&self, messages: &[Message], inputs: &TemplateInputs) -> Result<String, Error> {
        let messages: Vec<Value> = messages.iter().map(|message| self.normalize(message)).collect();
        let mut context = Map::new();
        context.insert("messages".to_owned(), messages.into());
        context.insert("tools".to_owned(), inputs.tools.clone().unwrap_or_default());
        context.insert("documents".to_owned(), Value::Null);
        context.insert("add_generation_prompt".to_owned(), true.into());
        context.extend(inputs.variables.clone());
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Serde(context)))
            .map_err(|error| template_error(&self.origin, &error))
    }

    /// Whether the template's source contains this text.
    #[must_use]
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.environment.get_template(NAME).is_ok_and(|template| template.source().contains(text))
    }

    /// Joins the text parts of a message, unless the template iterates over them.
    fn normalize(&self, message: &Message) -> Value {
        let mut message = message.clone();
        if !self.takes_parts
            && let Some(Value::Array(parts)) = message.get("content")
        {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            let text: String = texts.collect();
            message.insert("content".to_owned(), text.into());
        }
        message.into()
    }
}

/// The file that contains the template, and its text.
fn source(
    dir: &Path,
    tokenizer: &Tokenizer,
    file: Option<&Path>,
) -> Result<Option<(PathBuf, String)>, Error> {
    let text = |path: PathBuf, bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path, text))),
        Err(_) => Err(Error::file(&path, "is not UTF-8 text")),
    };
    if let Some(file) = file {
        return match read_bounded(file, MAX_FILE_BYTES)? {
            Some(bytes) => text(file.to_owned(), bytes),
            None => Err(Error::file(file, "does not exist")),
        };
    }
    let path = dir.join("chat_template.jinja");
    if let Some(bytes) = read_bounded(&path, MAX_FILE_BYTES)? {
        return text(path, bytes);
    }
    let path = dir.join("tokenizer_config.json");
    if let Some(source) = of_json(&path, tokenizer.config())? {
        return Ok(Some((path, source)));
    }
    let path = dir.join("chat_template.json");
    let Some(json) = read_json(&path, MAX_FILE_BYTES)? else { return Ok(None) };
    Ok(of_json(&path, &json)?.map(|source| (path, source)))
}

/// The template in `chat_template`: a string, or a list of named templates: `default`, or else the first, is
/// taken.
fn of_json(path: &Path, json: &Map<String, Value>) -> Result<Option<String>, Error> {
    let invalid = || {
        Error::file(path, "`chat_template` must be a string or a list of objects with `name` and `template`")
    };
    match json.get("chat_template") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(source)) => Ok(Some(source.clone())),
        Some(Value::Array(list)) => {
            let named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some("default");
            let Some(entry) = list.iter().find(named).or(list.first()) else { return Ok(None) };
            let source = entry.get("template").and_then(Value::as_str).ok_or_else(invalid)?;
            Ok(Some(source.to_owned()))
        }
        Some(_) => Err(invalid()),
    }
}

fn raise_exception(message: String) -> Result<String, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

fn template_error(origin: &Path, error: &minijinja::Error) -> Error {
    let mut reason = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "takes too many steps".to_owned(),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        reason = format!("{reason}: {inner}");
        cause = inner.source();
    }
    Error::Template { name: origin.display().to_string(), line: error.line().unwrap_or(1), reason }
}

/// Replaces `{% generation %}`, which marks training targets and has no effect on the text, by `{% if true %}`, which
/// keeps the effect of its dashes on white space.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        let word = tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
        match word {
            "generation" => out.push_str(&tag.replace(word, "if true")),
            "endgeneration" => out.push_str(&tag.replace(word, "endif")),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out + rest
}

/// Whether a `for` loop of the template iterates over a message's `content`.
fn iterates_content(source: &str) -> bool {
    source.split("{%").skip(1).any(|tag| {
        let tag = tag.split("%}").next().unwrap_or_default().trim_matches(['-', '+']).trim();
        let Some((_, list)) = tag.strip_prefix("for ").and_then(|rest| rest.split_once(" in ")) else {
            return false;
        };
        let list = list.split(" if ").next().unwrap_or_default().trim();
        let list = list.trim_end_matches(['\'', '"', ']', ')']);
        list == "content" || [".content", "'content", "\"content"].iter().any(|end| list.ends_with(end))
    })
}

#[cfg(test)]
mod tests;
