//! `llama`: Llama 2 and 3, `SmolLM2`, and `mistral` (<https://arxiv.org/abs/2307.09288>, <https://arxiv.org/abs/2310.06825>).
//!
//! Pre-norm blocks, grouped-query attention with rotary positions, `SwiGLU`. Mistral adds a sliding window.

use super::Model;
use super::args::{Args, refuse};
use crate::checkpoint::ModelConfig;
use crate::diagnostic::{Code, Diagnostic};
use crate::mlx::{self, Array};
use crate::nn::{Attention, AttentionShape, Batch, Cache, Embedding, Linear, RmsNorm, Rope, Turn, Window};
use crate::weights::{WeightMap, broken};

/// What the family reads of `config.json`.
struct LlamaArgs {
    intermediate: usize,
    vocabulary: usize,
    context: Option<usize>,
    eps: f32,
    attention: AttentionShape,
    mlp_bias: bool,
    /// One for each layer.
    windows: Vec<Window>,
}

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, Diagnostic> {
    let args = Args::new(config);
    let spec = args.rope(10_000.0)?;
    let args = LlamaArgs::lower(&args, config)?;
    let rope = Rope::new(&spec, args.attention.head_dim).map_err(|error| broken(&error))?;
    let hidden = args.attention.hidden;

    let embedding = Embedding::new(weights, "model.embed_tokens", args.vocabulary, hidden)?;
    let mut blocks = Vec::new();
    for (layer, window) in args.windows.iter().enumerate() {
        blocks.push(Block::new(weights, layer, &args, *window)?);
    }
    let norm = RmsNorm::new(weights, "model.norm", hidden, args.eps)?;
    let head = Linear::new(weights, "lm_head", args.vocabulary, hidden, false)?;
    let LlamaArgs { vocabulary, context, .. } = args;
    Ok(Box::new(Llama { embedding, rope, blocks, norm, head, vocabulary, context }))
}

impl LlamaArgs {
    fn lower(args: &Args<'_>, config: &ModelConfig) -> Result<Self, Diagnostic> {
        if let Some(other) = args.word("hidden_act")?.filter(|&word| word != "silu") {
            let message = format!("`hidden_act` `{other}` is not what `{}` computes", config.model_type);
            return Err(Diagnostic::new(Code::UnsupportedModel, message));
        }
        let hidden = args.required_size("hidden_size")?;
        let (heads, kv_heads, head_dim) = args.heads(hidden)?;
        let layers = args.required_size("num_hidden_layers")?;
        #[expect(clippy::cast_possible_truncation, reason = "computed in f32")]
        let eps = args.number("rms_norm_eps")?.unwrap_or(1e-6) as f32;
        Ok(Self {
            intermediate: args.required_size("intermediate_size")?,
            vocabulary: args.required_size("vocab_size")?,
            context: args.size("max_position_embeddings")?,
            eps,
            attention: AttentionShape {
                hidden,
                heads,
                kv_heads,
                head_dim,
                bias: args.flag("attention_bias", false)?,
            },
            mlp_bias: args.flag("mlp_bias", false)?,
            windows: windows(args, config, layers)?,
        })
    }
}

/// Each layer's window: as `layer_types` says, else all layers of a `mistral` have it and no layer of a `llama`.
fn windows(args: &Args<'_>, config: &ModelConfig, layers: usize) -> Result<Vec<Window>, Diagnostic> {
    let window = args.size("sliding_window")?;
    match args.words("layer_types")? {
        Some(types) if types.len() != layers => {
            Err(refuse(format!("`layer_types` has {} entries for {layers} layers", types.len())))
        }
        Some(types) => Ok(types.iter().map(|&kind| window.filter(|_| kind == "sliding_attention")).collect()),
        None => Ok(vec![window.filter(|_| config.text_model_type() == "mistral"); layers]),
    }
}

/// down(silu(gate(x)) · up(x)), with gate and up as one.
#[derive(Debug)]
struct Mlp {
    gate_up: Linear,
    down: Linear,
    inner: i32,
}

impl Mlp {
    fn new(weights: &mut WeightMap<'_>, module: &str, args: &LlamaArgs) -> Result<Self, Diagnostic> {
        let (hidden, inner, bias) = (args.attention.hidden, args.intermediate, args.mlp_bias);
        let parts = [("gate_proj", inner), ("up_proj", inner)];
        Ok(Self {
            gate_up: Linear::stacked(weights, module, &parts, hidden, bias)?,
            down: Linear::new(weights, &format!("{module}.down_proj"), hidden, inner, bias)?,
            inner: mlx::int(inner).map_err(|error| broken(&error))?,
        })
    }

    fn forward(&self, x: &Array) -> mlx::Result<Array> {
        let both = self.gate_up.forward(x)?;
        let (batch, count, inner) = (both.dim(0), both.dim(1), self.inner);
        let gate = both.slice(&[0, 0, 0], &[batch, count, inner])?;
        let up = both.slice(&[0, 0, inner], &[batch, count, 2 * inner])?;
        self.down.forward(&gate.multiply(&gate.sigmoid()?)?.multiply(&up)?)
    }
}

/// One layer: x + attention(norm(x)), then x + mlp(norm(x)).
#[derive(Debug)]
struct Block {
    attention_norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    mlp: Mlp,
}

impl Block {
    fn new(
        weights: &mut WeightMap<'_>,
        layer: usize,
        args: &LlamaArgs,
        window: Window,
    ) -> Result<Self, Diagnostic> {
        let module = format!("model.layers.{layer}");
        let hidden = args.attention.hidden;
        Ok(Self {
            attention_norm: RmsNorm::new(weights, &format!("{module}.input_layernorm"), hidden, args.eps)?,
            attention: Attention::new(
                weights,
                &format!("{module}.self_attn"),
                args.attention,
                layer,
                window,
            )?,
            mlp_norm: RmsNorm::new(weights, &format!("{module}.post_attention_layernorm"), hidden, args.eps)?,
            mlp: Mlp::new(weights, &format!("{module}.mlp"), args)?,
        })
    }

    fn forward(&self, x: &Array, turn: &Turn<'_>, batch: &mut Batch<'_>) -> mlx::Result<Array> {
        let x = x.add(&self.attention.forward(&self.attention_norm.forward(x)?, turn, batch)?)?;
        x.add(&self.mlp.forward(&self.mlp_norm.forward(&x)?)?)
    }
}

/// The model.
#[derive(Debug)]
struct Llama {
    embedding: Embedding,
    rope: Rope,
    blocks: Vec<Block>,
    norm: RmsNorm,
    head: Linear,
    vocabulary: usize,
    context: Option<usize>,
}

impl Model for Llama {
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn context(&self) -> Option<usize> {
        self.context
    }

    fn cache(&self) -> Cache {
        Cache::new(self.blocks.len())
    }

    fn hidden(&self, tokens: &Array, batch: &mut Batch<'_>) -> mlx::Result<Array> {
        let turn = self.rope.turn(batch)?;
        let mut x = self.embedding.forward(tokens)?;
        for block in &self.blocks {
            x = block.forward(&x, &turn, batch)?;
        }
        Ok(x)
    }

    fn logits(&self, hidden: &Array) -> mlx::Result<Array> {
        self.head.forward(&self.norm.forward(hidden)?)
    }
}
