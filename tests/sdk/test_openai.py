"""The official Python SDK against the built program: `cargo xtask test --real` runs it with the program's path."""

import contextlib
import json
import sys
import tempfile
import unittest
from pathlib import Path

import openai

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "fixtures/models/tiny-tales/base"
DONOR = ROOT / "fixtures/models/tiny-tales/task_vector.safetensors"
PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tests"))

from serving import serving  # noqa: E402

TALK = [{"role": "user", "content": "One morning Anna"}]


@contextlib.contextmanager
def talking(*more, key="none", ready=True):
    with serving(PROGRAM, BASE, *more, ready=ready) as url:
        with openai.OpenAI(base_url=url + "/v1", api_key=key) as client:
            yield client


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.client = cls.stack.enter_context(talking("--max-batch", "4"))

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def test_models(self):
        [model] = self.client.models.list().data
        self.assertEqual(model.id, "base")
        self.assertEqual(self.client.models.retrieve("base").meta["surgery"]["active"], False)

    def test_chat_and_stream_agree(self):
        asked = dict(model="base", messages=TALK, max_completion_tokens=30, temperature=0.7, seed=5)
        whole = self.client.chat.completions.create(**asked)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 30)
        stream = self.client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage, whole.usage)
        self.assertEqual({chunk.system_fingerprint for chunk in chunks}, {whole.system_fingerprint})

    def test_the_helper_for_streams(self):
        with self.client.chat.completions.stream(model="base", messages=TALK, max_tokens=60, stop=".") as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertTrue(final.choices[0].message.content)

    def test_completions(self):
        reply = self.client.completions.create(
            model="base", prompt=["One morning Anna", "The fox"], n=2, max_tokens=5, logprobs=2, echo=True, stop="qq")
        self.assertEqual([choice.index for choice in reply.choices], [0, 1, 2, 3])
        self.assertTrue(reply.choices[2].text.startswith("The fox"))
        told = reply.choices[0].logprobs
        self.assertEqual(len(told.tokens), len(told.token_logprobs))
        self.assertIsNone(told.token_logprobs[0])
        self.assertEqual("".join(told.tokens), reply.choices[0].text)

    def test_log_probabilities(self):
        reply = self.client.chat.completions.create(
            model="base", messages=TALK, max_tokens=4, temperature=0, logprobs=True, top_logprobs=3)
        content = reply.choices[0].logprobs.content
        self.assertEqual([entry.token for entry in content], [entry.top_logprobs[0].token for entry in content])
        self.assertEqual(bytes(b for e in content for b in e.bytes).decode(), reply.choices[0].message.content)

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"brave": {"type": "boolean"}}, "required": ["brave"],
                  "additionalProperties": False}
        reply = self.client.chat.completions.create(
            model="base", messages=TALK, max_tokens=100, temperature=0,
            response_format={"type": "json_schema", "json_schema": {"name": "fox", "schema": schema, "strict": True}})
        self.assertEqual(reply.choices[0].finish_reason, "stop")
        self.assertIn(json.loads(reply.choices[0].message.content)["brave"], [True, False])

    def test_further_fields(self):
        reply = self.client.chat.completions.create(
            model="base", messages=TALK, max_tokens=4, extra_body={"top_k": 1, "min_p": 0.1}, temperature=1)
        greedy = self.client.chat.completions.create(model="base", messages=TALK, max_tokens=4, temperature=0)
        self.assertEqual(reply.choices[0].message.content, greedy.choices[0].message.content)

    def test_errors_have_their_classes(self):
        ask = self.client.chat.completions.create
        with self.assertRaises(openai.BadRequestError) as caught:
            ask(model="base", messages=TALK, temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        self.assertTrue(caught.exception.request_id.startswith("req-"))
        with self.assertRaises(openai.NotFoundError) as caught:
            ask(model="gpt", messages=TALK)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            ask(model="base", messages=TALK, max_tokens=1000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_the_raw_response_tells_the_surgery(self):
        raw = self.client.chat.completions.with_raw_response.create(model="base", messages=TALK, max_tokens=1)
        self.assertEqual(raw.headers["x-mlxcel-surgery"], "none")


class Servers(unittest.TestCase):
    def test_a_key(self):
        with talking("--api-key", "open", key="open") as client:
            self.assertEqual(len(client.models.list().data), 1)
            with self.assertRaises(openai.AuthenticationError):
                client.with_options(api_key="shut").models.list()

    def test_loading_is_waited_for_by_retries(self):
        with talking(ready=False) as client:
            reply = client.with_options(max_retries=10).completions.create(model="base", prompt="A", max_tokens=1)
            self.assertEqual(reply.usage.completion_tokens, 1)

    def test_surgery_changes_the_fingerprint(self):
        def fingerprint(*more):
            with talking(*more) as client:
                return client.completions.create(model="base", prompt="A", max_tokens=1).system_fingerprint

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "surgery.yaml"
            file.write_text(f"version: 1\noperations: [{{op: add, pattern: '*', source: '{DONOR}', alpha: 1.0}}]\n")
            edited = fingerprint("--surgery", str(file))
            self.assertEqual(edited, fingerprint("--surgery", str(file)))
            file.write_text("version: 1\noperations: []\n")
            self.assertEqual(fingerprint("--surgery", str(file)), fingerprint())
            self.assertNotEqual(edited, fingerprint())


if __name__ == "__main__":
    unittest.main()
