//! `mlxcel surgery keys`: the keys that patterns match.

use std::borrow::Cow;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::exit::Exit;
use super::failure::Outcome;
use super::output;
use crate::checkpoint::{
    AffineFormat, Checkpoint, Key, ModelConfig, Origin, Packing, Role, TensorId, TensorIndex, TensorInfo,
    Weights, packing,
};
use crate::cli::{KeysArgs, OutputFormat};
use crate::diagnostic::{Code, Diagnostic, Source, render, rows};
use crate::plan::{self, FORMAT_VERSION};
use crate::surgery::{Matcher, Pattern};

pub(super) fn run(args: &KeysArgs) -> Outcome {
    let pattern = match args.pattern.as_deref().map(|text| (text, Pattern::parse(text))) {
        Some((text, Err(error))) => {
            let diagnostic = Diagnostic::new(Code::BadGlob, error.message).label(error.span, "");
            return Ok(refuse(&[Diagnostic { help: error.help, ..diagnostic }], Some(text)));
        }
        Some((_, Ok(pattern))) => Some(pattern),
        None => None,
    };
    let opened = match (&args.model, &args.donor) {
        (Some(model), _) => Opened::model(model),
        (None, Some(donor)) => Opened::donor(donor),
        (None, None) => return Ok(Exit::UsageError),
    };
    let Opened { weights, config } = match opened {
        Ok(opened) => opened,
        Err(refusals) => return Ok(refuse(&refusals, None)),
    };
    let matcher = pattern.as_ref().map(Matcher::new);
    let keys: Vec<Line<'_>> = (weights.index.ids().zip(weights.index.entries()))
        .filter(|(_, (key, _))| matcher.as_ref().is_none_or(|matcher| matcher.matches(key.as_str())))
        .map(|(id, (key, info))| Line::new(&weights.index, &config, id, key, info))
        .collect();
    if let Some(pattern) = pattern.filter(|_| keys.is_empty()) {
        let text = pattern.as_str();
        let diagnostic = Diagnostic::new(Code::NoMatch, format!("`{text}` matches no tensor"))
            .label(0..text.len(), "")
            .help(match args.donor {
                Some(_) => plan::no_donor_match_help(&weights, text),
                None => plan::no_match_help(&weights.index, text),
            });
        return Ok(refuse(&[diagnostic], Some(text)));
    }
    match args.format() {
        OutputFormat::Text => {
            let mut table: Vec<_> = keys.iter().map(|line| (line.key.to_string(), line.text())).collect();
            table.sort_by_cached_key(|(key, _)| natural(key));
            output::stdout(&rows(&table, 0, output::list_look()))?;
        }
        OutputFormat::Json => {
            let document = Document { format_version: FORMAT_VERSION, keys: &keys };
            let text = serde_json::to_string_pretty(&document);
            output::stdout(&(text.expect("keys and numbers have a JSON form") + "\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// The weights whose keys are listed: a model's, with its tied head restored, or a donor's as they are.
struct Opened {
    weights: Weights,
    config: ModelConfig,
}

impl Opened {
    fn model(dir: &Path) -> Result<Self, Vec<Diagnostic>> {
        match Checkpoint::open(dir) {
            Ok(Checkpoint { weights, config, .. }) => Ok(Self { weights, config }),
            Err(errors) => Err(plan::base_refusals(&errors)),
        }
    }

    fn donor(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        match Weights::open(path) {
            Ok(weights) => Ok(Self { weights, config: plan::config_beside(path).unwrap_or_default() }),
            Err(errors) => Err(plan::donor_refusals(path, &errors)),
        }
    }
}

/// The sort key that puts layer 2 before layer 10.
fn natural(key: &str) -> Vec<(u64, String)> {
    let part = |part: &str| match part.parse() {
        Ok(number) => (number, String::new()),
        Err(_) => (u64::MAX, part.to_owned()),
    };
    key.split('.').map(part).collect()
}

/// Prints diagnostics on standard error. Their labels are places in the pattern, which takes the place of a file.
fn refuse(diagnostics: &[Diagnostic], pattern: Option<&str>) -> Exit {
    let source = pattern.map(|text| Source { path: "PATTERN".into(), text: text.into() });
    output::stderr(&render(diagnostics, source.as_ref(), output::stderr_look()));
    Exit::Error
}

/// The JSON document. One key at a time becomes a JSON object in memory.
#[derive(Serialize)]
struct Document<'l> {
    format_version: &'static str,
    keys: &'l [Line<'l>],
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// One key and its properties.
struct Line<'b> {
    key: &'b Key,
    info: &'b TensorInfo,
    role: Option<&'static str>,
    affine: Option<AffineFormat>,
    /// The text model's name for it, if that differs.
    text_key: Option<String>,
}

impl<'b> Line<'b> {
    fn new(
        index: &TensorIndex,
        config: &ModelConfig,
        id: TensorId,
        key: &'b Key,
        info: &'b TensorInfo,
    ) -> Self {
        let affine = match packing(index, config, id) {
            Packing::Affine(set) => set.format,
            _ => None,
        };
        let text_key = config.text_key(key).filter(|name| name != key.as_str());
        Self { key, info, role: role(Role::of(key)), affine, text_key: text_key.map(Cow::into_owned) }
    }

    fn text(&self) -> String {
        let Self { info, role, affine, text_key, .. } = self;
        let mut parts = vec![format!("{} {:?}", info.dtype.to_string().to_lowercase(), info.shape)];
        parts.extend(
            affine.map(|AffineFormat { bits, group_size }| format!("{bits} bits, groups of {group_size}")),
        );
        parts.extend(role.map(str::to_owned));
        if let Origin::Tied(to) = &info.origin {
            parts.push(format!("tied to {to}"));
        }
        parts.extend(text_key.as_ref().map(|name| format!("loaded as {name}")));
        parts.join("  ")
    }

    fn json(&self) -> Value {
        let Self { key, info, role, affine, text_key } = self;
        let mut object = Map::new();
        object.insert("key".to_owned(), key.as_str().into());
        object.insert("dtype".to_owned(), info.dtype.to_string().into());
        object.insert("shape".to_owned(), json!(info.shape));
        if let Some(role) = role {
            object.insert("role".to_owned(), json!(role));
        }
        if let Some(AffineFormat { bits, group_size }) = affine {
            object.insert("affine".to_owned(), json!({ "bits": bits, "group_size": group_size }));
        }
        if let Origin::Tied(to) = &info.origin {
            object.insert("tied_to".to_owned(), to.as_str().into());
        }
        if let Some(name) = text_key {
            object.insert("loaded_as".to_owned(), name.as_str().into());
        }
        object.into()
    }
}

/// The name that most families give a role; `None` for `Other`.
fn role(role: Role) -> Option<&'static str> {
    Some(match role {
        Role::Query => "q_proj",
        Role::KeyProjection => "k_proj",
        Role::Value => "v_proj",
        Role::FusedQkv => "qkv_proj",
        Role::Output => "o_proj",
        Role::QueryNorm => "qk_norm",
        Role::Gate => "gate_proj",
        Role::Up => "up_proj",
        Role::FusedGateUp => "gate_up_proj",
        Role::Down => "down_proj",
        Role::Norm => "norm",
        Role::Embedding => "embedding",
        Role::Head => "head",
        Role::Router => "router",
        Role::Other => return None,
    })
}
