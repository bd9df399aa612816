"""Decode and prefill speed of mlxcel against mlx_lm on one model, in turns in one run. Both decode greedily, by their own
loops: mlx_lm by its `generate_step`.

    python3 benches/mlx_lm.py target/release/mlxcel models/smollm2-135m-instruct-4bit

needs `mlx-lm==0.32.2` and, on Linux, `mlx-cpu==0.32.2` in that Python, whose BLAS should be the one that mlxcel uses
(in the wheel's `mlx_cpu.libs`, link the two BLAS names to `libopenblas.so.0`, as `cargo xtask setup` does in its own
copy). mlx_lm runs on an f32 copy of the model, dequantized in memory: that is what mlxcel computes with on a CPU.
`--packed` adds mlx_lm on the checkpoint as it is, with few tokens, because that takes seconds for each.
"""

import argparse
import json
import statistics
import subprocess
import sys

THEIRS = """
import json, resource, sys, time
import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm import load
from mlx_lm.generate import generate_step
from mlx_lm.utils import dequantize_model
path, prompt, count, dense = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "dense"
begin = time.perf_counter()
model, _ = load(path)
if dense:
    cast = lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a
    model.update(tree_map(cast, model.parameters()))
    model = dequantize_model(model)
mx.eval(model.parameters())
loaded = time.perf_counter() - begin
tokens = [(i * 7919 + 13) % 49000 for i in range(prompt)]
begin = time.perf_counter()
for done, _ in enumerate(generate_step(mx.array(tokens), model, max_tokens=count)):
    if done == 0:
        prefill = time.perf_counter() - begin
        begin = time.perf_counter()
decode = time.perf_counter() - begin
print(json.dumps({"load": loaded, "prefill": prompt / prefill, "decode": done / decode,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def theirs(model, prompt, count, kind):
    command = [sys.executable, "-c", THEIRS, model, str(prompt), str(count), kind]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(binary, model, prompt, count):
    tokens = ",".join(str((i * 7919 + 13) % 49000) for i in range(prompt))
    command = [binary, "generate", "--model", model, "--tokens", tokens, "--max-tokens", str(count)]
    run = subprocess.run([*command, "--temp", "0", "--json", "--quiet"], check=True, capture_output=True, text=True)
    run = json.loads(run.stdout)
    if run["finish_reason"] != "length":
        sys.exit(f"the model ended the text after {run['usage']['completion_tokens']} tokens: ask for fewer")
    timings = run["timings"]
    return {
        "load": timings["load_s"],
        "prefill": timings["prefill_tokens_per_second"],
        "decode": timings["decode_tokens_per_second"],
        "peak": timings["peak_memory_bytes"],
    }


def median(runs, what):
    return statistics.median(run[what] for run in runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--packed", action="store_true")
    args = parser.parse_args()
    a, b = [], []
    for _ in range(args.rounds):
        a.append(ours(args.binary, args.model, args.prompt, args.tokens))
        b.append(theirs(args.model, args.prompt, args.tokens, "dense"))
    print(f"prompt {args.prompt}, {args.tokens} tokens, medians of {args.rounds}")
    for what, unit, scale in [
        ("load", "s", 1),
        ("prefill", "tokens/s", 1),
        ("decode", "tokens/s", 1),
        ("peak", "MB", 1e-6),
    ]:
        x, y = median(a, what) * scale, median(b, what) * scale
        print(f"{what:8} mlxcel {x:8.2f}  mlx_lm f32 {y:8.2f} {unit:9} ratio {x / y:.2f}")
    if args.packed:
        c = theirs(args.model, 1, 3, "packed")
        print(f"decode   mlxcel {median(a, 'decode'):8.2f}  mlx_lm as shipped {c['decode']:.2f} tokens/s, "
              f"ratio {median(a, 'decode') / c['decode']:.0f}")


main()
