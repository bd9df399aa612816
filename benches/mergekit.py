"""Merging with mlxcel against mergekit: the same work on the same disk, in turns in one run, results compared.

    python3 benches/mergekit.py target/release/mlxcel FOLDER

needs `mergekit==0.1.5` in that Python and 10 GB in FOLDER, where three random bf16 llamas of 1.7 GB are made at first: a
base and two donors near it. Of each pair of runs the fastest of `--runs` counts, the files being in the page cache.

* `task_arithmetic` of one model with weight 0.5 is one `add` of its task vector, alpha 0.5. mergekit subtracts the base
  itself; mlxcel adds a donor of deltas, which is made beforehand.
* `slerp` with t = 0.3 is one `interpolate`. mergekit mixes linearly from |cos| 0.9995, so the donors are far apart.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

LAYERS, HIDDEN, INNER, HEADS, VOCABULARY = 22, 1536, 5120, 12, 32000

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def shapes():
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    yield "lm_head.weight", (VOCABULARY, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            yield f"{at}self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
        yield at + "mlp.gate_proj.weight", (INNER, HIDDEN)
        yield at + "mlp.up_proj.weight", (INNER, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, INNER)
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)


def make(folder, seed, base=None, part=1.0):
    """A random llama, or one that is `base` and `part` of something random. One tensor at a time in f32."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    if (folder / "model.safetensors").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1))
    random = torch.Generator().manual_seed(seed)
    near = safe_open(base / "model.safetensors", "pt") if base else None
    tensors = {}
    for key, shape in shapes():
        values = torch.randn(shape, generator=random) * 0.02 * part
        if near:
            values += near.get_tensor(key).float()
        tensors[key] = values.bfloat16()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def deltas(base, tuned, path):
    """What mergekit computes first: the difference in the checkpoint's dtype."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    if path.exists():
        return
    first, second = (safe_open(one / "model.safetensors", "pt") for one in (base, tuned))
    save_file({key: second.get_tensor(key) - first.get_tensor(key) for key, _ in shapes()}, path)


def run(command, output):
    """Seconds and peak resident bytes of a command that writes a new folder."""
    shutil.rmtree(output, ignore_errors=True)
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{command} failed:\n{said.decode()}")
    return seconds, usage.ru_maxrss * 1024


def compare(ours, theirs):
    """Elements of all, elements that differ, and by how many units in the last place at most."""
    import numpy as np
    import torch
    from safetensors import safe_open

    def tensors(folder):
        return {key: file for path in folder.glob("*.safetensors") for file in [safe_open(path, "pt")] for key in file.keys()}

    ours, theirs = tensors(ours), tensors(theirs)
    count = differ = most = 0
    for key, _ in shapes():
        first, second = (
            file[key].get_tensor(key).view(torch.int16).numpy().astype(np.int32) for file in (ours, theirs)
        )
        # Bits in the order of the numbers they stand for.
        first, second = (np.where(bits < 0, -(bits & 0x7FFF), bits) for bits in (first, second))
        apart = np.abs(first - second)
        count, differ, most = count + apart.size, differ + int((apart > 0).sum()), max(most, int(apart.max()))
    return count, differ, most


def apart(step, *paths):
    """Runs a function of this file in a process of its own. A program's peak memory is never below that of the process
    that starts it, so this one has to stay small."""
    command = [sys.executable, __file__, step, *map(str, paths)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def prepare(folder):
    base = folder / "base"
    make(base, 1)
    make(folder / "a", 2, base, 0.5)
    make(folder / "b", 3, base, 0.5)
    deltas(base, folder / "a", folder / "delta.safetensors")


def main():
    if sys.argv[1:2] == ["prepare"]:
        return prepare(pathlib.Path(sys.argv[2]))
    if sys.argv[1:2] == ["compare"]:
        return print(*compare(*map(pathlib.Path, sys.argv[2:])))
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("mlxcel")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, default=2)
    arguments.add_argument("--only", choices=["task_arithmetic", "slerp"])
    arguments = arguments.parse_args()
    folder = arguments.folder.resolve()
    base, a, b = folder / "base", folder / "a", folder / "b"
    apart("prepare", folder)
    size = (base / "model.safetensors").stat().st_size
    merges = {
        "task_arithmetic": (
            f"merge_method: task_arithmetic\nbase_model: {base}\nmodels:\n- model: {a}\n  parameters: {{weight: 0.5}}\n"
            "dtype: bfloat16\n",
            "version: 1\noperations:\n- {op: add, pattern: '*', source: delta.safetensors, alpha: 0.5}\n",
        ),
        "slerp": (
            f"merge_method: slerp\nbase_model: {a}\nmodels:\n- model: {b}\nparameters: {{t: 0.3}}\ndtype: bfloat16\n",
            "version: 1\noperations:\n- {op: interpolate, pattern: '*', source_a: a, source_b: b, ratio: 0.3, "
            "method: slerp}\n",
        ),
    }
    mergekit = pathlib.Path(sys.executable).with_name("mergekit-yaml")
    print(f"checkpoints of {size / 1e9:.2f} GB")
    for name, (theirs, ours) in merges.items():
        if arguments.only not in (None, name):
            continue
        (folder / f"{name}.theirs.yaml").write_text(theirs)
        (folder / f"{name}.ours.yaml").write_text(ours)
        their_output, our_output = folder / "out-theirs", folder / "out-ours"
        their_command = [mergekit, folder / f"{name}.theirs.yaml", their_output, "--no-copy-tokenizer"]
        our_command = [arguments.mlxcel, "surgery", "export", folder / f"{name}.ours.yaml"]
        our_command += ["--model", base, "--output", our_output]
        subprocess.run(["cat", *folder.glob("*/model.safetensors"), *folder.glob("*.safetensors")], stdout=subprocess.DEVNULL)
        results = [(run(our_command, our_output), run(their_command, their_output)) for _ in range(arguments.runs)]
        our, their = (tuple(min(values) for values in zip(*side)) for side in zip(*results))
        count, differ, most = apart("compare", our_output, their_output).split()
        print(
            f"{name:16} mlxcel {our[0]:6.1f} s {our[1] / 1e6:6.0f} MB   mergekit {their[0]:6.1f} s "
            f"{their[1] / 1e6:6.0f} MB   {their[0] / our[0]:5.1f} times as fast, {our[1] / their[1]:.3f} of the memory   "
            f"{differ} of {count} elements differ, by {most} units at most",
            flush=True,
        )


main()
