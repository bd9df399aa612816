"""A thousand requests to `mlxcel serve`, most of them unruly, beside a client that behaves.

    python3 benches/unruly.py target/release/mlxcel

Clients go away in the middle, send bodies that are no JSON or no request, read slowly, have wrong keys, stop in the middle
of a head. Among them are plain requests, whose greedy answers have to be those that each got alone. At the end no
slot is taken, the behaving client has had every answer right, and memory is within 5 % of where it was after a first
tenth of the requests. Exits with 1 otherwise.
"""

import argparse
import collections
import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

MODEL = Path(__file__).resolve().parents[1] / "fixtures/models/tiny-tales/base"
KEY = "the-right-key"
PROMPTS = ["One morning Anna", "The fox", "He", "In the forest there was a", "日本", "She felt", "A", "It was 🦊"]
# What a body must not be, and is refused with 400.
MALFORMED = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"prompt": 1}', b'{"prompt": "a", "max_tokens": -1}', b'{"promt": "a"}',
             b'{"prompt": "a", "temperature": "hot"}', b'{"prompt": "a", "n": 1000}', b"{" * 10000, b'{"prompt": [999999]}',
             b'{"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 7}}}}',
             b'{"messages": []}', b'{"prompt": "a", "stop": 7}', b'{"prompt": "a", "logit_bias": {"x": 1}}']


def requests():
    """Requests whose answers can be compared, with their path and body."""
    for at, prompt in enumerate(PROMPTS):
        common = {"max_tokens": 20 + 5 * at, "temperature": 0}
        yield "/v1/completions", {"prompt": prompt * (1 + 9 * (at % 3)), **common, "logprobs": 1}
        yield "/v1/chat/completions", {"messages": [{"role": "user", "content": prompt}], **common}


class Server:
    def __init__(self, binary):
        command = [binary, "serve", "--model", str(MODEL), "--port", "0", "--quiet", "--api-key", KEY, "--max-batch", "8",
                   "--max-queue", "64", "--prompt-cache", "2"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().strip().rsplit(":", 1)[1])
        while self.ask("GET", "/health")[0] != 200:
            time.sleep(0.01)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, key=KEY):
        connection = self.connect()
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    def raw(self, path, body, receive=None):
        """A connection that has sent a request and read nothing."""
        connection = socket.socket()
        if receive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.port))
        head = (f"POST {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n")
        connection.sendall(head.encode() + body)
        return connection

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def figures(self):
        lines = self.ask("GET", "/metrics")[1].decode().splitlines()
        return {name: float(value) for name, _, value in (line.partition(" ") for line in lines) if name[:1] != "#"}


def choices(body):
    return json.loads(body)["choices"]


class Run:
    def __init__(self, server):
        self.server, self.wrong, self.counts, self.lock = server, [], collections.Counter(), threading.Lock()
        self.known = []
        for path, body in requests():
            status, answer = server.ask("POST", path, json.dumps(body))
            assert status == 200, answer
            self.known.append((path, body, choices(answer)))

    def note(self, kind, fine, what=""):
        with self.lock:
            self.counts[kind] += 1
            if not fine:
                self.wrong.append(f"{kind}: {what}"[:300])

    def plain(self, chance):
        path, body, wanted = chance.choice(self.known)
        status, answer = self.server.ask("POST", path, json.dumps(body))
        fine = status == 200 and choices(answer) == wanted
        # More than the queue takes may be asked for; then it has to say so.
        self.note("plain" if status != 429 else "refused, queue full", fine or status == 429, (status, answer))

    def goes_away(self, chance):
        path, body, _ = chance.choice(self.known)
        body = {**body, "stream": chance.random() < 0.7, "max_tokens": 200, "n": chance.choice([1, 1, 3])}
        connection = self.server.raw(path, json.dumps(body).encode())
        for _ in range(chance.randrange(4)):
            if body["stream"]:
                connection.recv(chance.choice([1, 100, 1000]))
        time.sleep(chance.random() * 0.02)
        connection.close()
        self.note("gone", True)

    def malformed(self, chance):
        body = chance.choice(MALFORMED)
        status, answer = self.server.ask("POST", "/v1/completions", body)
        self.note("malformed", status == 400 and "error" in json.loads(answer), (body[:80], status, answer))

    def half_a_request(self, chance):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        text = b"POST /v1/completions HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\n{\"prompt\""
        connection.sendall(text[:chance.randrange(len(text))])
        connection.close()
        self.note("half", True)

    def wrong_key(self, chance):
        key = chance.choice(["", "wrong", KEY[:-1], KEY + "x"])
        status, _ = self.server.ask("POST", "/v1/completions", b'{"prompt": "a"}', key)
        self.note("wrong key", status == 401, status)

    def reads_slowly(self, chance):
        path, body, wanted = chance.choice(self.known)
        connection = self.server.raw(path, json.dumps({**body, "stream": True}).encode(), receive=2048)
        received = b""
        while piece := connection.recv(chance.choice([7, 64, 512])):
            received += piece
            time.sleep(0.001)
        connection.close()
        head, _, rest = received.partition(b"\r\n\r\n")
        if b" 429 " in head.split(b"\r\n")[0]:
            return self.note("refused, queue full", True)
        # Chunks of HTTP begin with their length; events are lines of their own.
        events = [line[6:] for line in rest.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: {")]
        told = [choice for event in events for choice in choices(event)]
        text = "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in told)
        whole = wanted[0].get("text") or wanted[0].get("message", {}).get("content")
        self.note("slow", text == whole and b"[DONE]" in rest, (text, whole))

    def behaving(self, until):
        """One client that asks again and again."""
        chance, slowest = random.Random(1), 0
        while not until.is_set():
            path, body, wanted = chance.choice(self.known)
            begin = time.perf_counter()
            status, answer = self.server.ask("POST", path, json.dumps(body))
            slowest = max(slowest, time.perf_counter() - begin)
            self.note("behaving", status == 200 and choices(answer) == wanted, (status, answer))
        self.slowest = slowest

    def go(self, count, seed, threads=16):
        kinds = [self.plain, self.goes_away, self.malformed, self.half_a_request, self.wrong_key, self.reads_slowly]
        order = random.Random(seed)
        left = [(order.choices(kinds, [3, 3, 2, 1, 1, 1])[0], order.randrange(1 << 30)) for _ in range(count)]

        def work():
            while True:
                with self.lock:
                    if not left:
                        return
                    kind, number = left.pop()
                try:
                    kind(random.Random(number))
                except (OSError, ValueError, http.client.HTTPException) as error:
                    self.note(kind.__name__, False, repr(error))

        until = threading.Event()
        steady = threading.Thread(target=self.behaving, args=(until,))
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for thread in [steady, *workers]:
            thread.start()
        for thread in workers:
            thread.join()
        until.set()
        steady.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = Server(options.binary)
    try:
        run = Run(server)
        run.go(max(options.requests // 10, 50), options.seed + 1)
        time.sleep(1)
        before = server.memory()
        run.counts.clear()
        begin = time.perf_counter()
        run.go(options.requests, options.seed)
        took = time.perf_counter() - begin
        time.sleep(1)
        after, figures = server.memory(), server.figures()
        if figures["mlxcel_active"] or figures["mlxcel_queue_depth"]:
            run.wrong.append(f"slots are still taken: {figures['mlxcel_active']}, {figures['mlxcel_queue_depth']}")
        for path, body, wanted in run.known:
            if choices(server.ask("POST", path, json.dumps(body))[1]) != wanted:
                run.wrong.append(f"an answer has changed for good: {body}")
        if after > before * 1.05:
            run.wrong.append("memory has grown by more than 5 %")
        print(f"{options.requests} requests in {took:.1f} s: " + ", ".join(f"{n} {kind}" for kind, n in run.counts.items()))
        print(f"memory {before} kB before, {after} kB after ({100 * (after / before - 1):+.1f} %); "
              f"the behaving client waited {run.slowest:.2f} s at most")
        server.process.terminate()
        if (code := server.process.wait(20)) != 0:
            run.wrong.append(f"the server ended with {code}")
    finally:
        server.process.kill()
    if run.wrong:
        sys.exit("\n".join(run.wrong[:20]))


if __name__ == "__main__":
    main()
