"""Models of language that answer prompts, from recipe to table.

python3 -m tests.cli.generate_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path

from tests.cli import support

# A learned table of positions, a window, heads that share keys, a capped head.
MODEL = """workload lm(ids: i32[N,10], y: i32[N,10]) {
  e = embedding(ids; weight=embed.weight[30,16])
  p = position_embedding(e; weight=places.weight[10,16])
  n = rms_norm(p; weight=block.norm.weight[16]) dims=1 eps=1e-06
  q = linear(n; weight=block.attn.q.weight[24,16])
  qs = reshape(q) shape=N,10,4,6
  k = linear(n; weight=block.attn.k.weight[12,16])
  ks = reshape(k) shape=N,10,2,6
  v = linear(n; weight=block.attn.v.weight[12,16], bias=block.attn.v.bias[12])
  vs = reshape(v) shape=N,10,2,6
  a = attention(qs, ks, vs) causal=true window=4
  f = reshape(a) shape=N,10,24
  o = linear(f; weight=block.attn.o.weight[16,24])
  r = add(p, o)
  head = linear(r; weight=head.weight[30,16])
  capped = tanh(head)
  loss = softmax_cross_entropy(capped, y)
}
"""
TOP = (
    'scenario = "generate"\nworkload = "lm.ir"\nbatch = 6\nalpha = 0.5\nmargin = 1.0\n'
)
ANSWERS = "prompt = 4\nwords = 6\nanswers = 2\nprocesses = 1\nbatches = 2\n"
SECTIONS = {
    "top": TOP,
    "optimizer": "",
    "generate": ANSWERS,
    "budget": support.UNENDING,
}
TORCH = 'framework = "torch"'
# Every day alone, in one heat; a race of two contenders has three at least.
CONTENDERS = ['framework = "jax", precision = "bfloat16"']
QUICK = ['framework = "onnxruntime", cache = ["static", "none"]']
PROVEN = [TORCH, 'framework = "tensorflow"', 'framework = "jax", cache = "none"']
if support.FULL:
    CONTENDERS += [
        *PROVEN[:2],
        'framework = "torch", cache = "none"',
        'framework = "keras", backend = ["tensorflow", "jax", "torch"]',
        'framework = "torch", compile = "default"',
        'framework = "tensorflow", mode = "eager"',
        'framework = "tensorflow", jit_compile = true',
        'framework = "keras2", jit_compile = [true, false]',
    ]
    QUICK += ['framework = "onnxruntime", cache = "dynamic"', 'framework = "libtorch"']
OTHERS = [
    'framework = "libtorch", cache = "none"',
    'framework = "libtorch", precision = ["bfloat16", "float16"]',
    'framework = "torch", cache = "dynamic"',
    'framework = "torch", compile = "default", cache = "none"',
    'framework = "torch", cache = ["static", "dynamic", "none"], precision = "bfloat16"',
    'framework = "jax", cache = ["static", "none"], precision = ["float32", "float16"]',
    'framework = "tensorflow", mode = ["function", "eager"], cache = "none"',
    'framework = "tensorflow", jit_compile = true, cache = "none"',
    'framework = "tensorflow", cache = ["static", "none"], precision = "bfloat16"',
    'framework = "keras", backend = ["tensorflow", "jax", "torch"], cache = "none"',
    'framework = "keras2", cache = ["static", "none"], precision = "bfloat16"',
    'framework = "keras2", cache = "none"',
    'framework = "keras", backend = ["tensorflow", "jax", "torch"], '
    'precision = "bfloat16"',
]
PROOFS = ["float64 prediction", "float64 words", "float32 prediction"]
HALF = ["bfloat16 logits", "bfloat16 words"]


class Generate(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        environments = ["torch", "jax", "tensorflow", "onnxruntime"]
        environments += ["keras2"] if support.FULL else []
        support.need(*environments)
        self.place = support.Place(
            environments,
            warm="proofs" in self._testMethodName,
            shared_proofs=True,
            shared_programs=True,
        )
        self.addCleanup(self.place.close)
        self.place.write("lm.ir", MODEL)

    def recipe(self, contenders: list[str], **sections: str) -> Path:
        given = {**SECTIONS, **sections}
        return self.place.write("lm.toml", support.recipe(contenders, **given))

    def test_race(self) -> None:
        budget = support.UNENDING if support.FULL else "minutes = 30\nheats = 1\n"
        self.race(self.recipe(CONTENDERS, budget=budget), [6, 2])
        shown = self.place.run("report", "r")
        self.assertIn("generation: a step answers each prompt of one batch", shown.out)

    def test_race_of_those_that_start_quickly(self) -> None:
        words = ANSWERS.replace("batches = 2\n", "").replace("prompt = 4\n", "")
        self.race(self.recipe(QUICK, generate=words), [6])
        self.assertNotIn("Words were not", self.place.run("report", "r").out)

    def race(self, recipe: Path, batches: list[int]) -> None:
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        report = done.json()
        reasons = [
            (row["contender"]["id"], row["failure"]) for row in report["unranked"]
        ]
        self.assertEqual(reasons, [])
        self.assertEqual(report["gflop_per_step"], 0)  # not counted for words
        for row in report["ranked"]:
            checks = [check["what"] for check in row["proof"]["checks"]]
            half = "precision" in row["contender"]["id"]
            self.assertEqual(checks, PROOFS + (HALF if half else []))
        ranked = {row["contender"]["id"] for row in report["ranked"]}
        words = {(row["contender"], row["batch"]): row for row in report["generate"]}
        self.assertEqual(set(words), {(one, n) for one in ranked for n in batches})
        for row in words.values():
            self.assertEqual((row["prompt"], row["words"]), (4, 6))
            self.assertEqual((row["answers"], row["compilations"]), (2, 0), row["note"])
            self.assertGreater(row["words_per_second"]["value"], 0)

    def test_proofs_of_others(self) -> None:
        others = OTHERS if support.FULL else PROVEN
        self.place.ok("parity", self.recipe(others))

    def test_refused(self) -> None:
        torch = [TORCH]
        uncached = ['framework = "torch", cache = "none"']
        self.place.write("mine.py", "import torch\n")
        cases = {
            "do not fit the 10 positions of 'lm'": self.text(
                torch, generate="words = 9\nprompt = 2\n"
            ),
            "a prompt of 5 words and 6 in answer do not fit": self.text(
                torch, generate=ANSWERS + "prompts = [2, 5]\n"
            ),
            "'generate.words' is 0": self.text(torch, generate="words = 0\n"),
            "[generate] is about the scenario": self.text(
                torch, top=TOP.replace("generate", "predict")
            ),
            "a script of your own has no scenario 'generate'": self.text(
                ['script = "mine.py"']
            ),
            "setting 'cache' of torch has no effect in scenario 'predict'": self.text(
                uncached, top=TOP.replace("generate", "predict"), generate=""
            ),
            "setting 'cache' of jax cannot be 'dynamic'": self.text(
                ['framework = "jax", cache = "dynamic"']
            ),
            "in the as-is track nothing is generated": self.text(
                torch, top=TOP + 'track = "as-is"\n'
            ),
            "'lm' cannot generate word by word: a = attention sees": self.text(
                torch, model=MODEL.replace("causal=true window=4", "")
            ),
        }
        for words, text in cases.items():
            with self.subTest(words):
                done = self.place.run("recipe", self.place.write("r.toml", text))
                self.assertEqual(done.code, 2, done.out)
                self.assertIn(words, " ".join(done.err.split()))

    def text(self, contenders: list[str], model: str = MODEL, **sections: str) -> str:
        self.place.write("other.ir" if model != MODEL else "lm.ir", model)
        given = {**SECTIONS, **sections}
        text = support.recipe(contenders, **given)
        return text.replace("lm.ir", "other.ir") if model != MODEL else text


if __name__ == "__main__":
    support.main()
