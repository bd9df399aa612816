"""The page at `/` in a real browser, driven by the keyboard alone.

    python3 tests/page/test_page.py target/release/mlxcel /usr/bin/chromium

needs what `requirements.txt` beside it names, and a Chromium.
"""

import contextlib
import json
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "fixtures/models/tiny-tales"
PROGRAM, BROWSER = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, str(ROOT / "tests"))

from serving import serving  # noqa: E402

SIZES = {"wide": (1280, 800), "narrow": (360, 640)}


def opened(*more, model=MODELS / "base"):
    return serving(PROGRAM, model, *more)


def endless(folder):
    """A copy of the model that never comes to an end."""
    model = folder / "endless"
    shutil.copytree(MODELS / "base", model)
    for name, change in (("config.json", {"eos_token_id": None, "max_position_embeddings": 1_000_000}),
                         ("tokenizer_config.json", {"eos_token": None})):
        settings = json.loads((model / name).read_text()) | change
        (model / name).write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))
    return model


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.browser = cls.stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"])
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        cls.endless = cls.stack.enter_context(opened(model=endless(Path(folder))))
        surgery = Path(folder) / "surgery.yaml"
        surgery.write_text("version: 1\noperations: [{op: scale, pattern: '*.mlp.down_proj.weight', factor: 0.5}]\n")
        cls.plain = cls.stack.enter_context(opened())
        cls.both = cls.stack.enter_context(opened("--surgery", str(surgery), "--keep-base"))
        cls.locked = cls.stack.enter_context(opened("--api-key", "secret"))

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.stack.close()

    @contextlib.contextmanager
    def page(self, url, size="wide", scheme="light", **more):
        """A page that must neither complain nor ask anybody but its server."""
        width, height = SIZES[size]
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith((url, "data:")) else complaints.append(request.url))
        page.goto(url + "/")
        page.locator("#send:enabled").wait_for()
        yield page
        self.assertEqual(complaints, [])
        context.close()

    def ask(self, page, text):
        """Types a message where the focus is, and waits for the end of the answers."""
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        page.locator("#stop:disabled").wait_for()

    def answers(self, page):
        return page.locator(".said.model span").all_text_contents()

    def said(self, page, url, model, content):
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 200,
                           "temperature": 0, "seed": 0})
        reply = page.request.post(url + "/v1/chat/completions", data=body, headers={"content-type": "application/json"})
        return reply.json()["choices"][0]["message"]["content"]

    def test_a_chat_by_keyboard(self):
        with self.page(self.plain) as page:
            self.assertEqual(page.evaluate("document.activeElement.id"), "text")
            self.ask(page, "One morning Anna")
            self.assertEqual(self.answers(page), [self.said(page, self.plain, "base", "One morning Anna")])
            page.fill("#tokens", "20")
            page.focus("#text")
            # The focus is back for the next message, which has the first as its context.
            self.assertEqual(page.evaluate("document.activeElement.id"), "text")
            self.ask(page, "The fox")
            self.assertEqual(len(self.answers(page)), 2)
            self.assertEqual(page.locator(".said.error").count(), 0)

    def test_every_control_is_reached_by_tab_and_shows_it(self):
        with self.page(self.both) as page:
            reached = []
            for _ in range(12):
                page.keyboard.press("Tab")
                reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
                if reached[-1] != "BODY":
                    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                    self.assertEqual(style, "solid", reached[-1])
            self.assertLessEqual({"temperature", "tokens", "seed", "raw", "clear", "send", "SUMMARY", "text"}, set(reached))

    def test_both_models_side_by_side_with_the_plan(self):
        with self.page(self.both) as page:
            self.assertIn("base (sha256:", page.locator("#which").text_content())
            self.assertIn("and base@base", page.locator("#which").text_content())
            page.keyboard.press("Shift+Tab")
            page.focus("summary")
            page.keyboard.press("Enter")
            self.assertIn('"tensors_edited"', page.locator("#facts").inner_text())
            page.focus("#text")
            self.ask(page, "One morning Anna")
            wanted = [self.said(page, self.both, model, "One morning Anna") for model in ("base", "base@base")]
            self.assertEqual(self.answers(page), wanted)
            self.assertNotEqual(*wanted)
            left, right = (box.bounding_box() for box in page.locator(".said.model").all())
            self.assertLess(left["x"] + left["width"], right["x"])
            self.assertAlmostEqual(left["y"], right["y"], delta=1)

    def test_an_answer_can_be_stopped(self):
        with self.page(self.endless) as page:
            page.fill("#tokens", "900000")
            page.focus("#text")
            page.keyboard.type("One morning Anna")
            page.keyboard.press("Enter")
            page.locator(".said.model span:not(:empty)").wait_for()
            page.keyboard.press("Escape")
            page.locator("#stop:disabled").wait_for()
            self.assertEqual(page.locator(".said.error").count(), 0)
            # The server has stopped too.
            while "mlxcel_active 0" not in page.request.get(self.endless + "/metrics").text():
                time.sleep(0.05)

    def test_nothing_is_wider_than_a_narrow_screen(self):
        for scheme in ("light", "dark"):
            with self.page(self.both, "narrow", scheme) as page:
                page.focus("summary")
                page.keyboard.press("Enter")
                page.fill("#tokens", "40")
                page.focus("#text")
                self.ask(page, "x" * 90)
                self.assertEqual(page.locator(".said.error").count(), 0)
                width = page.evaluate("document.documentElement.scrollWidth")
                self.assertLessEqual(width, 360)
                over = page.evaluate("[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 360.5)"
                                     ".map(e => e.tagName + '#' + e.id)")
                self.assertEqual(over, [])
                first, second = (box.bounding_box() for box in page.locator(".said.model").all())
                self.assertGreater(second["y"], first["y"])

    def test_texts_stand_out_in_light_and_dark(self):
        grounds = []
        for scheme in ("light", "dark"):
            with self.page(self.both, scheme=scheme) as page:
                self.ask(page, "One morning Anna")
                grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                for selector in ("h1", "#which", "summary", "label", ".said.model span", ".said.user span", ".said b", "#send"):
                    self.assertGreaterEqual(page.evaluate(CONTRAST, selector), 4.5, (scheme, selector))
        self.assertNotEqual(*grounds)

    def test_a_key_is_asked_for(self):
        credentials = {"username": "anybody", "password": "secret"}
        with self.page(self.locked, http_credentials=credentials) as page:
            self.ask(page, "One morning Anna")
            self.assertEqual(len(self.answers(page)), 1)
            self.assertEqual(page.locator(".said.error").count(), 0)


# The contrast of an element's text with the first ground behind it, as WCAG 2.2 defines it.
CONTRAST = """selector => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  let element = document.querySelector(selector), ground = element;
  while (parse(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
  const light = text => parse(text).slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
  const pair = [light(getComputedStyle(element).color), light(getComputedStyle(ground).backgroundColor)].sort();
  return (pair[1] + .05) / (pair[0] + .05);
}"""


if __name__ == "__main__":
    unittest.main()
