"""What several clients of `mlxcel serve` get together, against one alone, in turns in one run.

    python3 benches/serve.py target/release/mlxcel models/smollm2-135m-instruct-4bit

Each client asks for one answer to a prompt of its own, of 16 to 128 tokens, and reads it as a stream. Two figures for one
client and for all: tokens a second from the first request to the last token, prompts included, and while all
of them are decoding. Then how long a new client with a prompt of 128 tokens waits for its first token while the
others decode, against the bound: what such a prompt takes alone, and eight steps of the batch.
"""

import argparse
import json
import pathlib
import statistics
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

from serving import serving  # noqa: E402

LONGEST = 128


def prompt(seed, length):
    """Token ids that no other prompt begins with, so that no known beginning helps."""
    return [(seed * 7919 + place * 104729) % 40000 + 1000 for place in range(length)]


def ask(url, tokens, count):
    """When the request was sent, and when each token came."""
    # The ends of a text are ruled out, so that every answer has as many tokens.
    body = {"prompt": tokens, "max_tokens": count, "temperature": 0, "stream": True,
            "logit_bias": {"0": -100, "1": -100, "2": -100}}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    begin, came = time.perf_counter(), []
    with urllib.request.urlopen(request) as stream:
        for line in stream:
            if line.startswith(b"data: {"):
                came.append(time.perf_counter())
    return begin, came[:count]


def together(url, prompts, count):
    answers = [None] * len(prompts)

    def client(number):
        answers[number] = ask(url, prompts[number], count)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def speeds(answers):
    """Tokens a second: prompts included, and while all decode."""
    begin, end = min(begin for begin, _ in answers), max(came[-1] for _, came in answers)
    whole = sum(len(came) for _, came in answers) / (end - begin)
    all_from, all_to = max(came[0] for _, came in answers), min(came[-1] for _, came in answers)
    meanwhile = sum(all_from < at <= all_to for _, came in answers for at in came)
    return whole, meanwhile / (all_to - all_from) if meanwhile else float("nan")


def arrival(url, clients, number):
    """How long a new client waits while the others decode, and what a step of the batch takes."""
    others = []
    thread = threading.Thread(target=lambda: others.extend(
        together(url, [prompt(5000 + 100 * number + other, 16) for other in range(clients - 1)], 96)))
    thread.start()
    # By then the others have read their prompts.
    time.sleep(2.5)
    begin, came = ask(url, prompt(9000 + number, LONGEST), 16)
    thread.join()
    decoding = all(came_other[0] < begin and came_other[-1] > came[-1] for _, came_other in others)
    steps = [later - earlier for earlier, later in zip(came, came[1:])]
    return came[0] - begin, statistics.median(steps), decoding


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    clients = options.clients
    with serving(options.binary, options.model, "--max-batch", str(clients)) as url:
        ask(url, prompt(1, 16), 4)
        found = {1: [], clients: []}
        for number in range(options.rounds):
            for count in (1, clients):
                # Lengths from 16 to 128, their mean 72, as the single one's is.
                lengths = [72] if count == 1 else [16 + 112 * at // (clients - 1) for at in range(clients)]
                prompts = [prompt(100 * (number + 1) + 10 * count + at, length) for at, length in enumerate(lengths)]
                found[count].append(speeds(together(url, prompts, options.tokens)))
        for count, runs in found.items():
            whole, decoding = (statistics.median(run[place] for run in runs) for place in range(2))
            found[count] = whole, decoding
            print(f"{count} client(s): {whole:.1f} tokens/s with prompts, {decoding:.1f} decoding")
        print("ratio: {:.2f} with prompts, {:.2f} decoding".format(
            *(many / one for many, one in zip(found[clients], found[1]))))
        alone = statistics.median(
            came[0] - begin for begin, came in (ask(url, prompt(7000 + n, LONGEST), 1) for n in range(3)))
        for number in range(options.rounds):
            waited, step, decoding = arrival(url, clients, number)
            bound = alone + 8 * step
            print(f"a new client waits {waited:.2f} s; alone {alone:.2f} s, a step {step:.3f} s, so the bound is "
                  f"{bound:.2f} s{'' if decoding else ' (the others were not all decoding: choose more tokens)'}")


if __name__ == "__main__":
    main()
