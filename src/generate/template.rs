//! [`ChatTemplate`]: messages to one prompt, as the model was trained to read them.
//!
//! Templates are Jinja as transformers runs it: block tags take their own line with them, Python's string methods
//! work, `raise_exception`, `strftime_now` and JSON as Python writes it are at hand. A template is a program of
//! unknown origin, so its steps are counted and it ends when they are used up.

mod json;
mod time;

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind};
use serde_json::{Map, Value};

use super::error::{read_bounded, read_json};
use super::{Error, Tokenizer};

/// A message: `role`, `content` (a string, or a list of parts), and what else the template may know.
pub type Message = Map<String, Value>;

/// Steps that a template may take: a thousand times what a long conversation needs.
const FUEL: u64 = 5_000_000;
/// The longest template file that is read.
const LIMIT: u64 = 4 << 20;
/// The one template in its environment.
const NAME: &str = "chat";

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    origin: PathBuf,
    /// Whether the template goes through the parts of a message itself.
    takes_parts: bool,
}

/// What a prompt is rendered from, beside the messages.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// Tools, as chat requests list them.
    pub tools: Option<Value>,
    /// Further variables, such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

/// A message with a text.
#[must_use]
pub fn message(role: &str, content: &str) -> Message {
    let mut message = Map::new();
    message.insert("role".to_owned(), role.into());
    message.insert("content".to_owned(), content.into());
    message
}

impl ChatTemplate {
    /// The template of a model: of `file` if given, else of `chat_template.jinja`, `tokenizer_config.json` or
    /// `chat_template.json` in its directory; `None` when there is none.
    ///
    /// # Errors
    /// When a file cannot be read or the template does not compile; file and line are named.
    pub fn find(dir: &Path, tokenizer: &Tokenizer, file: Option<&Path>) -> Result<Option<Self>, Error> {
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
        environment.set_syntax(syntax.map_err(|error| refused(&origin, &error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", json::tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", time::strftime_now);
        for (name, token) in special {
            environment.add_global(name, token);
        }
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| refused(&origin, &error))?;
        Ok(Self { environment, origin, takes_parts: iterates_content(source) })
    }

    /// The prompt for these messages, open for the assistant's answer. Its special tokens are spelled out in it, so
    /// it is to be encoded without adding any.
    ///
    /// # Errors
    /// What the template says against these messages, or that it takes too many steps.
    pub fn render(&self, messages: &[Message], extra: &Extra) -> Result<String, Error> {
        let messages: Vec<Value> = messages.iter().map(|message| self.fit(message)).collect();
        let mut context = Map::new();
        context.insert("messages".to_owned(), messages.into());
        context.insert("tools".to_owned(), extra.tools.clone().unwrap_or_default());
        context.insert("documents".to_owned(), Value::Null);
        context.insert("add_generation_prompt".to_owned(), true.into());
        context.extend(extra.variables.clone());
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Serde(context)))
            .map_err(|error| refused(&self.origin, &error))
    }

    /// Whether the template has this text anywhere: what a model is taught to write stands there.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        self.environment.get_template(NAME).is_ok_and(|template| template.source().contains(text))
    }

    /// Joins the text parts of a message, unless the template wants the parts.
    fn fit(&self, message: &Message) -> Value {
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

/// The template's text and the file it came from.
fn source(
    dir: &Path,
    tokenizer: &Tokenizer,
    file: Option<&Path>,
) -> Result<Option<(PathBuf, String)>, Error> {
    let text = |path: PathBuf, bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path, text))),
        Err(_) => Err(Error::file(&path, "is not UTF-8")),
    };
    if let Some(file) = file {
        return match read_bounded(file, LIMIT)? {
            Some(bytes) => text(file.to_owned(), bytes),
            None => Err(Error::file(file, "does not exist")),
        };
    }
    let path = dir.join("chat_template.jinja");
    if let Some(bytes) = read_bounded(&path, LIMIT)? {
        return text(path, bytes);
    }
    let path = dir.join("tokenizer_config.json");
    if let Some(source) = of_json(&path, tokenizer.config())? {
        return Ok(Some((path, source)));
    }
    let path = dir.join("chat_template.json");
    let Some(json) = read_json(&path, LIMIT)? else { return Ok(None) };
    Ok(of_json(&path, &json)?.map(|source| (path, source)))
}

/// `chat_template`: a string, or a list of named ones, of which `default` (else the first) is taken.
fn of_json(path: &Path, json: &Map<String, Value>) -> Result<Option<String>, Error> {
    let wrong =
        || Error::file(path, "`chat_template` is neither a string nor a list of `name` and `template`");
    match json.get("chat_template") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(source)) => Ok(Some(source.clone())),
        Some(Value::Array(list)) => {
            let named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some("default");
            let Some(entry) = list.iter().find(named).or(list.first()) else { return Ok(None) };
            let source = entry.get("template").and_then(Value::as_str).ok_or_else(wrong)?;
            Ok(Some(source.to_owned()))
        }
        Some(_) => Err(wrong()),
    }
}

fn raise_exception(message: String) -> Result<String, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

fn refused(origin: &Path, error: &minijinja::Error) -> Error {
    let mut reason = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "it takes too many steps".to_owned(),
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

/// `{% generation %}` marks what a model is trained on and has no effect on the text. It becomes a condition that
/// always holds, which keeps what its dashes do to the whitespace around.
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

/// Whether a `for` of the template goes through a message's `content`.
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
