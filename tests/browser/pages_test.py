"""The HTML pages in a real browser, Chromium without a window.

Usage: python3 -m tests.browser.pages_test REPORT_TEST [unittest arguments]

REPORT_TEST, the unit tests of the report, writes the pages (keep_page of
src/report/sample_summary_testing.h). Every page is opened folded and unfolded, light
and dark, wide and narrow; the accessibility checker axe-core (scripts/axe) runs in it,
and what the page measures is read back from its DOM.
"""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
# Without a window and without the services that a browser calls at home.
CHROMIUM = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
  --disable-background-networking --disable-component-update --disable-sync
  --hide-scrollbars --virtual-time-budget=20000""".split()

# Runs in the page, after its own script.
PROBE = """
(async () => {
  const out = { errors: window.probeErrors };
  const unfold = %(unfold)s;
  if (unfold) document.querySelectorAll("details").forEach((d) => { d.open = true; });
  out.inner = innerWidth;
  out.width = document.documentElement.scrollWidth;
  out.height = document.documentElement.scrollHeight;
  out.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const cut = (node) => node.getBoundingClientRect().right > innerWidth + 1;
  out.cut = [...document.querySelectorAll(".bars tbody th, .bars tbody td, .bars em")].filter(cut).length;
  out.sideways = [...document.querySelectorAll(".scroll")]
    .filter((table) => table.scrollWidth > table.clientWidth + 1)
    .map((table) => table.closest("section").id);
  const bar = document.querySelector("nav .page");
  out.hidden_links = bar ? bar.scrollWidth - bar.clientWidth : 0;
  const figures = [...document.querySelectorAll("figure svg")];
  out.pictures = figures.filter((svg) => svg.getBoundingClientRect().width > 0).length;
  out.unlabelled = figures.filter((svg) => !svg.getAttribute("aria-label")).length;
  %(more)s
  const found = await axe.run(document, { resultTypes: ["violations"] });
  out.violations = found.violations.map((v) => v.id + ": " + v.help + ": "
    + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "));
  parent.postMessage(JSON.stringify(out), "*");
})();
"""

# Opens one page after the other. A window has a least width; a frame has none.
FRAMES = """<!DOCTYPE html><html style="color-scheme: %(scheme)s"><body style="margin:0">
<iframe height="1000" style="border:0"></iframe>
<pre id="probe"></pre>
<script>
const pages = %(pages)s, answers = [], frame = document.querySelector("iframe");
const next = () => {
  const page = pages[answers.length];
  if (page) [frame.width, frame.src] = page;
  else document.getElementById("probe").textContent = JSON.stringify(answers);
};
addEventListener("message", (event) => { answers.push(event.data); next(); });
next();
</script></body></html>"""


@dataclasses.dataclass(frozen=True)
class View:
    width: int = 1400
    dark: bool = False
    unfold: bool = False
    more: str = ""


class Browser:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.axe = (ROOT / ".cache/axe/axe.min.js").read_text()

    def run(self, *arguments: str) -> str:
        profile = tempfile.mkdtemp(dir=self.folder)
        try:
            command = ["chromium", *CHROMIUM, f"--user-data-dir={profile}"]
            done = subprocess.run(
                [*command, *arguments], capture_output=True, text=True, timeout=600
            )
            return done.stdout
        finally:
            shutil.rmtree(profile, ignore_errors=True)

    def look(self, views: Sequence[tuple[str, View]]) -> dict[tuple[str, View], Any]:
        """What every page measures under its view."""
        answers: dict[tuple[str, View], Any] = {}
        for dark in (False, True):  # a browser has one scheme
            asked = [one for one in views if one[1].dark == dark]
            pages = [
                (view.width, self.probed(i, name, view))
                for i, (name, view) in enumerate(asked)
            ]
            scheme = "dark" if dark else "light"
            frames = self.folder / "frames.html"
            frames.write_text(FRAMES % {"scheme": scheme, "pages": json.dumps(pages)})
            dom = self.run(
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                *("--window-size=1500,1100", "--dump-dom", frames.as_uri()),
            )
            found = re.search(r'<pre id="probe">(.+?)</pre>', dom, re.DOTALL)
            assert found, f"a page gave no answer: {dom[-2000:]}"
            texts = json.loads(html.unescape(found[1]))
            answers |= zip(asked, map(json.loads, texts), strict=True)
        return answers

    def probed(self, number: int, name: str, view: View) -> str:
        """The name of a copy of the page that measures itself."""
        text = (self.folder / f"{name}.html").read_text()
        probe = PROBE % {"unfold": str(view.unfold).lower(), "more": view.more}
        catch = "window.probeErrors=[];addEventListener('error',(e)=>probeErrors.push(e.message));"
        text = text.replace("<head>", f"<head><script>{catch}</script>", 1)
        # A page without a script of its own allows none: the probe needs one.
        text = text.replace("default-src 'none'; style-src", "style-src")
        text = re.sub(r"(Content-Security-Policy\" content=\")[^\"]*", r"\1", text)
        text = text.replace(
            "</body>", f"<script>{self.axe}</script><script>{probe}</script></body>"
        )
        scheme = "dark" if view.dark else "light"
        copy = self.folder / f"probed_{number}_{scheme}_{name}.html"
        copy.write_text(text)
        return copy.name

    def printed_pages(self, page: Path) -> int:
        pdf = self.folder / "page.pdf"
        self.run(f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page.as_uri())
        return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


# What the tests look at, in one go: starting a browser takes as long as a look.
WIDTHS = (View(), View(dark=True), View(width=800), View(width=390))
UNFOLDED = (
    View(unfold=True),
    View(unfold=True, dark=True, width=800),
    View(unfold=True, width=390),
)
HISTORIES = (
    View(unfold=True),
    View(dark=True, unfold=True),
    View(width=800),
    View(width=390, dark=True, unfold=True),
)
EXPLANATIONS = (View(), View(width=390, dark=True))
NARROW = View(unfold=True, width=390)
BY_KEYBOARD = """
  const plot = document.getElementById("plot");
  const range = () => [Number(plot.dataset.from), Number(plot.dataset.to)];
  const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const say = () => document.getElementById("point").textContent;
  const begin = performance.now();
  document.querySelector('.multiples button[data-line="8"]').click();
  plot.getBoundingClientRect();
  out.ms = performance.now() - begin;
  out.all = range();
  out.name = document.getElementById("chart-name").textContent;
  out.pressed = [...document.querySelectorAll('[aria-pressed="true"]')].map((b) => b.dataset.line);
  press("+"); press("+");
  out.zoomed = range();
  press("Home");
  out.home = [...range(), say()];
  press("ArrowRight");
  out.second = say();
  press("End");
  out.end = [...range(), say()];
  press("Escape");
  out.back = range();
  const box = plot.getBoundingClientRect();
  const point = (type, x) => plot.dispatchEvent(new PointerEvent(type,
    { clientX: box.left + x, clientY: box.top + 50, pointerId: 1, bubbles: true }));
  point("pointerdown", 200); point("pointermove", 300); point("pointermove", 400); point("pointerup", 400);
  out.dragged = range();
  document.querySelector("[data-do=later]").click();
  out.later = range();
  document.querySelector("#points").closest("details").open = true;
  await new Promise((done) => setTimeout(done, 50));
  out.rows = document.querySelectorAll("#points tbody tr").length;
  out.dots = plot.querySelector(".dots").getAttribute("d").split("M").length - 1;
  document.querySelector("[data-do=all]").click();
  out.every = plot.querySelector(".dots").getAttribute("d").split("M").length - 1;
  out.sign = plot.querySelectorAll(".shift-sign").length;
  out.marks = plot.querySelectorAll(".mark-sign").length;
  out.shifts = document.getElementById("shifts").textContent;
  out.sparks = document.querySelectorAll(".small svg .dots").length;
"""
LINKS = """
  location.hash = "#parity";
  await new Promise((done) => setTimeout(done, 300));
  out.opened = document.querySelector("#parity > details").open;
  const heads = [...document.querySelectorAll("#table thead th")];
  const column = heads.findIndex((th) => th.textContent === "ms/step");
  const read = () => [...document.querySelectorAll("#table tbody tr")]
    .map((tr) => parseFloat(tr.cells[column].querySelector("b, span").textContent.replace(",", "")));
  const button = heads[column].querySelector("button");
  button.click();
  out.up = read();
  out.sort = heads[column].getAttribute("aria-sort");
  button.click();
  out.down = read();
"""
VIEWS = [
    *(("sample", view) for view in (*WIDTHS, *UNFOLDED, View(more=LINKS))),
    *((name, NARROW) for name in ("single", "empty", "poisoned")),
    *((name, view) for name in ("explain", "reproduction") for view in EXPLANATIONS),
    *(("history", view) for view in (*HISTORIES, View(more=BY_KEYBOARD))),
    *((name, NARROW) for name in ("history_empty", "history_poisoned")),
]


class Pages(unittest.TestCase):
    report_test: str
    folder: Path
    browser: Browser
    answers: dict[tuple[str, View], Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="bakeoff_pages_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        variables = {**os.environ, "BAKEOFF_KEEP_PAGES": str(cls.folder)}
        subprocess.run(
            [cls.report_test, "--gtest_filter=*Page*"],
            env=variables,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        subprocess.run(
            [ROOT / "scripts/axe"], check=True, stdout=subprocess.DEVNULL, cwd=ROOT
        )
        cls.browser = Browser(cls.folder)
        cls.answers = cls.browser.look(VIEWS)

    def check(self, name: str, view: View) -> dict[str, Any]:
        answer: dict[str, Any] = self.answers[name, view]
        about = f"{name}, {view}"
        self.assertEqual(answer["violations"], [], about)
        self.assertEqual(answer["errors"], [], about)
        self.assertEqual(answer["inner"], view.width, about)
        self.assertLessEqual(answer["width"], view.width, f"{about}: scrolls sideways")
        self.assertEqual(answer["cut"], 0, f"{about}: the ranking is cut off")
        self.assertEqual(answer["unlabelled"], 0, about)
        self.assertLessEqual(answer["hidden_links"], 0, f"{about}: links are cut off")
        if view.width >= 1400:
            self.assertEqual(answer["sideways"], [], f"{about}: tables scroll sideways")
        self.assertEqual(answer["dark"], view.dark, about)
        return answer

    def test_the_report_at_every_width(self) -> None:
        for view in WIDTHS:
            with self.subTest(view=view):
                answer = self.check("sample", view)
                if view.width == 390:
                    self.assertLessEqual(answer["height"], 6000)

    def test_the_report_unfolded(self) -> None:
        for view in UNFOLDED:
            with self.subTest(view=view):
                answer = self.check("sample", view)
                self.assertGreaterEqual(answer["pictures"], 7)

    def test_odd_reports(self) -> None:
        for name in ("single", "empty", "poisoned"):
            with self.subTest(name=name):
                self.check(name, NARROW)

    def test_the_pages_of_an_explanation_and_a_replay(self) -> None:
        for name in ("explain", "reproduction"):
            for view in EXPLANATIONS:
                with self.subTest(name=name, view=view):
                    self.check(name, view)

    def test_the_page_of_histories_at_every_width(self) -> None:
        for view in HISTORIES:
            with self.subTest(view=view):
                self.check("history", view)
        for name in ("history_empty", "history_poisoned"):
            with self.subTest(name=name):
                self.check(name, NARROW)

    def test_the_page_of_histories_is_looked_at_by_keyboard_and_pointer(self) -> None:
        answer = self.check("history", View(more=BY_KEYBOARD))
        self.assertEqual(answer["name"], "net jax")
        self.assertEqual(answer["pressed"], ["8"])
        self.assertEqual(answer["all"], [0, 8000])
        self.assertEqual(answer["zoomed"], [3000, 5000])
        self.assertEqual(answer["home"][:2], [0, 2000])
        self.assertIn("run 01KDZPZV0050Y6TB4J7K000000", answer["home"][2])
        self.assertIn("run 01KDZPZV0050Y6TB4J7K000001", answer["second"])
        self.assertEqual(answer["end"][:2], [6000, 8000])
        self.assertIn("run 01KDZPZV0050Y6TB4J7K007999", answer["end"][2])
        self.assertEqual(answer["back"], [0, 8000])
        first, last = answer["dragged"]
        self.assertTrue(0 < first < last < 4000, answer["dragged"])
        self.assertAlmostEqual((last - first) / 8000, 200 / 1100, delta=0.05)
        half = (last - first + 1) // 2  # as a browser rounds
        self.assertEqual(answer["later"], [first + half, last + half])
        self.assertEqual(answer["dots"], last - first)
        self.assertEqual(answer["rows"], 200)
        self.assertEqual(answer["every"], 8000)
        self.assertGreaterEqual(answer["sign"], 1)
        self.assertGreaterEqual(answer["marks"], 15)
        self.assertIn("a pair decides", answer["shifts"])
        self.assertEqual(answer["sparks"], 9)

    def test_on_paper_the_folded_report_has_at_most_eight_pages(self) -> None:
        self.assertLessEqual(self.browser.printed_pages(self.folder / "sample.html"), 8)

    def test_links_unfold_and_headings_sort(self) -> None:
        answer = self.check("sample", View(more=LINKS))
        self.assertTrue(answer["opened"])
        self.assertEqual(answer["up"], sorted(answer["up"]))
        self.assertEqual(answer["sort"], "ascending")
        self.assertEqual(answer["down"], sorted(answer["up"], reverse=True))
        self.assertEqual(len(answer["up"]), 8)


def main() -> int:
    if shutil.which("chromium") is None:
        print("there is no chromium")
        return 1 if os.environ.get("BAKEOFF_REQUIRE_ENVS") else SKIPPED
    Pages.report_test = sys.argv.pop(1)
    unittest.main(module=__name__, verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
