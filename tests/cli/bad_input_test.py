"""Bad input: exit status 2, a message with file, line, key and remedy, and nothing written.

Needs no framework: python3 -m tests.cli.bad_input_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import resource
import struct
import subprocess
import unittest
from pathlib import Path

from tests.cli import support

GOOD = support.recipe(['framework = "torch"'])
LANGUAGE_MODEL = """
workload lm(x: i32[N,8], y: i32[N,8]) {
  e = embedding(x; weight=embed.weight[20,4])
  logits = linear(e; weight=out.weight[20,4], bias=out.bias[20])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
COMMANDS = [
    ["run"],
    ["calibrate"],
    ["parity"],
    ["check"],
    ["emit"],
    ["show"],
    ["ops"],
    ["recipe"],
    ["env"],
    ["env", "create"],
    ["env", "list"],
    ["env", "doctor"],
    ["doctor"],
    ["data"],
    ["report"],
    ["selftest"],
    ["machine"],
    ["machine", "diff"],
]


def safetensors(rows: int, labels: list[int], columns: int = 100) -> bytes:
    """x: f32[rows, columns], y: i32 labels."""
    x = struct.pack("<f", 0.5) * (rows * columns)
    y = struct.pack(f"<{len(labels)}i", *labels)
    header = json.dumps(
        {
            "x": {
                "dtype": "F32",
                "shape": [rows, columns],
                "data_offsets": [0, len(x)],
            },
            "y": {
                "dtype": "I32",
                "shape": [len(labels)],
                "data_offsets": [len(x), len(x) + len(y)],
            },
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + x + y


class BadInput(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)

    def files(self) -> set[Path]:
        """All but the home, where data sets and the runner package may be kept."""
        home = self.place.path / "home"
        return {p for p in self.place.path.rglob("*") if home not in [p, *p.parents]}

    def refuse(self, *arguments: str, says: list[str]) -> str:
        """Runs a command that must be refused with all the patterns of `says`."""
        before = self.files()
        got = self.place.run(*arguments)
        self.assertEqual(got.code, 2, f"{arguments}\n{got.out}{got.err}")
        self.assertEqual(got.out, "")
        for pattern in says:
            self.assertRegex(got.err, pattern)
        self.assertEqual(self.files(), before, got.err)
        self.assertEqual(self.place.none_left(), {})
        return got.err

    def refuse_recipe(
        self, text: str, line: int | None, *says: str, command: str = "run"
    ) -> None:
        """A recipe that must be refused; the second line of the message is a remedy."""
        self.place.write("race.toml", text)
        out = [] if command == "recipe" else ["--out", "out"]
        where = [] if line is None else [rf"race\.toml:{line}\b"]
        error = self.refuse(command, "race.toml", *out, says=[*where, *says])
        self.assertGreaterEqual(len(error.strip().splitlines()), 2, error)

    def line_of(self, text: str, part: str) -> int:
        return text[: text.index(part)].count("\n") + 1

    def edited(self, old: str, new: str, *says: str, command: str = "run") -> None:
        text = support.replaced(GOOD, (old, new))
        self.refuse_recipe(text, self.line_of(text, new), *says, command=command)

    # Recipes.

    def test_malformed_toml(self) -> None:
        self.edited("batch = 50", "batch = = 50", "not valid TOML")
        self.edited("batch = 50", 'batch = "50', "not valid TOML", command="recipe")

    def test_unknown_keys(self) -> None:
        self.edited("batch = 50", "bacth = 50", "'bacth'", "did you mean 'batch'")
        self.edited("eps = 1e-4", "epz = 1e-4", "'epz'", r"\[optimizer\]", "eps")
        self.edited("[budget]", "[bugdet]", "'bugdet'", "did you mean 'budget'")

    def test_wrong_types_and_ranges(self) -> None:
        self.edited("batch = 50", 'batch = "50"', "'batch' must be an integer")
        self.edited("lr = 1e-3", 'lr = "fast"', r"'optimizer\.lr' must be a number")
        self.edited("batch = 50", "batch = 0", "'batch' is 0", "at least 1")
        self.edited("lr = 1e-3", "lr = nan", r"'optimizer\.lr'", "at least 0")
        self.edited('kind = "adam"', 'kind = "adm"', "did you mean 'adam'")
        text = GOOD[: GOOD.index("[data]")] + "data = 3\n"
        line = self.line_of(text, "data = 3")
        self.refuse_recipe(text, line, "'data' must be a table", r"write \[data\]")

    def test_fewer_rows_than_one_call(self) -> None:
        for framework in ("jax", "tensorflow"):
            text = support.replaced(
                GOOD,
                ("batch = 50", 'batch = 50\ntrack = "as-is"'),
                ('"torch"', f'"{framework}", steps_per_call = [1, 5]'),
                ("eps = 1e-4\n", ""),
            )
            says = "a call takes 5 batches of 50 rows, but the data has only 200"
            remedy = "set steps_per_call to at most 4"
            self.refuse_recipe(text, self.line_of(text, "[1, 5]"), says, remedy)

    def test_missing_keys(self) -> None:
        text = support.replaced(GOOD, ("lr = 1e-3\n", ""))
        self.refuse_recipe(text, None, r"'optimizer\.lr' is missing", r"add `lr = ")
        self.refuse_recipe('workload = "mlp_small"\n', None, "is missing")

    def test_unknown_words(self) -> None:
        self.edited('"mlp.ir"', '"mlp_smal"', "'mlp_smal'", "did you mean 'mlp_small'")
        self.edited('"mlp.ir"', '"mpl.ir"', r"mpl\.ir", "name an IR file")
        self.edited('"torch"', '"troch"', "'troch'", "did you mean 'torch'")
        self.edited(
            '"torch" }', '"torch", compiled = true }', "'compiled'", "'compile'"
        )
        self.edited(
            '"torch" }', '"torch", compile = "best" }', "'best'", "max-autotune"
        )
        self.edited('framework = "torch"', 'script = "my.py"', "no script '.*my.py'")
        self.edited(
            '{ framework = "torch" }',
            '{ framework = "torch" }, { framework = "torch" }',
            "'torch' is named twice",
        )

    def test_controls(self) -> None:
        self.edited(
            '"torch" }', '"torch", allocator = "jmalloc" }', "did you mean 'jemalloc'"
        )
        self.edited('"torch" }', '"torch", pin = "0-" }', "'pin' cannot be '0-'")
        race = "\n[race]\n"
        for line, *says in [
            ('pin = "all"', "'pin' cannot be 'all'", "CPUs such as"),
            ('pin = "4095"', "may not run on CPU 4095", "choose among"),
            ("cooldown_seconds = -1", "outside its range"),
            ('huge_pages = "none"', "'none'", "default, off, malloc"),
        ]:
            text = GOOD + ("" if "[race]" in GOOD else race) + line + "\n"
            self.refuse_recipe(text, self.line_of(text, line), *says)

    measured_profile = ""  # the first test that needs one measures it

    def kernel_profile(self) -> str:
        if BadInput.measured_profile:
            return BadInput.measured_profile
        call = ("calibrate", "--framework", "kernel", "--output", "m.json")
        for minutes in ("0.02", "0.2", "2"):  # a busy machine measures no block in 1 s
            made = self.place.run(*call, "--minutes", minutes)
            if made.code == 0:
                break
        self.assertEqual(made.code, 0, made.err)
        BadInput.measured_profile = (self.place.path / "m.json").read_text()
        return BadInput.measured_profile

    def test_machine_profiles(self) -> None:
        self.place.write("race.toml", GOOD)
        run = ["run", "race.toml", "--out", "out", "--profile"]
        remedy = "bakeoff calibrate"
        self.refuse(*run, "none.json", says=["none.json", remedy])
        self.place.write("p.json", "{}")
        self.refuse(*run, "p.json", says=["p.json: ", "no machine profile", remedy])
        whole = self.kernel_profile()
        profile = json.loads(whole)
        self.assertGreaterEqual(len(profile["entries"][0]["d"]), 1)
        self.place.write("p.json", whole[: len(whole) // 2])
        self.refuse(*run, "p.json", says=["p.json: ", "truncated or damaged", remedy])
        for key, value, says in [
            ("cpu", "Z80", "another machine: its processor is 'Z80'"),
            ("name", "elsewhere", "another machine: 'elsewhere'"),
            ("kernel", "Linux 2.0", "another kernel: Linux 2.0"),
        ]:
            foreign = json.loads(whole)
            foreign["host"][key] = value
            self.place.write("p.json", json.dumps(foreign))
            self.refuse(*run, "p.json", says=[says, remedy, "--profile none"])

    def test_a_budget_that_the_machines_profile_says_cannot_decide(self) -> None:
        profile = json.loads(self.kernel_profile())
        profile["start_s"] = 10
        entry = profile["entries"][0]
        entry["d"] = [0.02, -0.02, 0.02, -0.02, 0.02]
        entry["controls"]["threads"] = "1"
        profile["entries"] = [entry]
        self.place.write("p.json", json.dumps(profile))
        contenders = ['framework = "torch"', 'framework = "jax"']

        def run(minutes: float, used: str) -> list[str]:
            budget = f"minutes = {minutes:g}\nheats = 100\n"
            self.place.write("race.toml", support.recipe(contenders, budget=budget))
            return ["run", "race.toml", "--out", f"out_{used}", "--profile", used]

        # Two contenders that take 10 s to start: one heat in half a minute.
        said = self.refuse(
            *run(0.5, "p.json"),
            says=[
                r"race\.toml:\d+: a budget of 30\.0 s cannot decide: by this machine's"
                r" profile it allows about 1 heat of 2 contenders, and fewer than \d+ decide nothing",
                r"\n  allow more than (\d+\.\d) minutes \(\d+\.\d for a gap of 50%\)",
                "--profile none",
            ],
        )
        least = re.search(r"more than (\d+\.\d) minutes", said)
        assert least is not None
        # "Nothing to race with" is the end of those that are not refused.
        for minutes, used in [(float(least[1]) + 0.1, "p.json"), (0.5, "none")]:
            got = self.place.run(*run(minutes, used))
            self.assertEqual(got.code, 1, got.err)
            predicted = "By this machine's profile" in got.err
            self.assertEqual(predicted, used == "p.json", got.err)

    def test_calibrate(self) -> None:
        self.refuse("calibrate", "--framework", "troch", says=["did you mean 'torch'"])
        got = self.place.run("calibrate", "--minutes", "0")
        self.assertEqual(got.code, 2)
        self.assertRegex(got.err, "must be a number above 0")

    def test_selftest(self) -> None:
        frameworks = ["nonsense", "torch", "libtorch"]
        self.refuse("selftest", "--framework", "nonsense", says=frameworks)
        for minutes in ("0", "-1", "long"):
            says = ["--minutes", minutes, "--help"]
            self.refuse("selftest", "--minutes", minutes, says=says)

    def test_machine_records(self) -> None:
        remedy = r"\n  .*bakeoff machine --again"
        for text in ("", '{"', "[]", '{"format": 99}'):
            self.place.write("a.json", text)
            self.refuse("machine", "diff", "a.json", "a.json", says=["a.json", remedy])
        self.refuse("machine", "diff", "no.json", "no.json", says=[r"no\.json"])
        self.refuse("machine", "diff", "a.json", says=["after"])

    def test_too_small_a_budget(self) -> None:
        two = support.replaced(
            GOOD, ('{ framework = "torch" },', '{ framework = ["torch", "jax"] },')
        )
        self.refuse_recipe(two, self.line_of(two, "{ framework"), "must be text")
        two = support.replaced(
            GOOD,
            (
                '{ framework = "torch" },',
                '{ framework = "torch" }, { framework = "jax" },',
            ),
        )
        heats = support.replaced(two, ("heats = 3", "heats = 1"))
        self.refuse_recipe(
            heats, self.line_of(heats, "heats = 1"), "heats", r"at least \d+ heats"
        )
        minutes = support.replaced(
            two, ("minutes = 4", "minutes = 0.001"), ("heats = 3", "heats = 40")
        )
        self.refuse_recipe(
            minutes,
            self.line_of(minutes, "minutes = 0.001"),
            r"a budget of 60 ms",
            r"allow more than 240 ms, or shorten",
        )

    # IR texts.

    def refuse_ir(self, old: str, new: str, *says: str) -> None:
        text = support.replaced(support.MLP, (old, new))
        self.place.write("bad.ir", text)
        where = rf"bad\.ir:{self.line_of(text, new)}\b"
        self.refuse("show", "bad.ir", says=[where, *says])
        recipe = support.replaced(GOOD, ('"mlp.ir"', '"bad.ir"'))
        self.refuse_recipe(recipe, None, where, *says)

    def test_bad_workloads(self) -> None:
        self.refuse_ir("relu(h1)", "relo(h1)", "'relo'", "relu")
        self.refuse_ir("relu(h1)", "relu(h7)", "'h7'")
        self.refuse_ir("weight=fc2", "wait=fc2", "'wait'", "weight")
        self.refuse_ir("[10,32]", "[10,31]", "31", "32")
        self.refuse_ir("relu(h1)", "relu h1", "expected")
        self.refuse_ir("reduction=mean", "reduction=meen", "reduction.* mean, sum")

    # Data files.

    def refuse_data(self, content: bytes, *says: str) -> None:
        (self.place.path / "mine.safetensors").write_bytes(content)
        text = support.replaced(
            GOOD, ("samples = 200", 'kind = "file"\npath = "mine.safetensors"')
        )
        for command in ("run", "emit", "parity"):
            self.refuse_recipe(text, None, r"mine\.safetensors", *says, command=command)

    def test_bad_data(self) -> None:
        good = safetensors(60, [3] * 60)
        (self.place.path / "mine.safetensors").write_bytes(good)
        text = support.replaced(
            GOOD, ("samples = 200", 'kind = "file"\npath = "mine.safetensors"')
        )
        self.place.write("race.toml", text)
        self.place.ok("emit", "race.toml", "--out", "fine")

        self.refuse_data(safetensors(60, [3] * 59 + [10]), "'?y'?", "59", "10")
        self.refuse_data(safetensors(60, [-1] + [3] * 59), "'?y'?", "-1")
        self.refuse_data(safetensors(60, [3] * 59), "rows|59")
        self.refuse_data(safetensors(60, [3] * 60, 99), "'?x'?", "99", "100")
        self.refuse_data(good[:-1], "truncated|short|bytes|size")
        self.refuse_data(good[:20], "header|truncated|short|bytes")
        self.refuse_data(b"", "header|empty|short|bytes")
        self.refuse_data(good[:8] + b"!" + good[9:], "header|JSON")
        self.refuse_data(struct.pack("<Q", 1 << 60) + good[8:], "header")
        nan = bytearray(good)
        nan[-60 * 4 - 4 : -60 * 4] = struct.pack("<f", float("nan"))
        self.refuse_data(bytes(nan), "'?x'?", "59", "nan|NaN|finite")

    def test_fewer_rows_than_a_batch(self) -> None:
        text = support.replaced(GOOD, ("samples = 200", "samples = 20"))
        for command in ("run", "emit", "parity"):
            self.refuse_recipe(
                text,
                self.line_of(text, "batch"),
                "50",
                "20",
                "at most 20",
                command=command,
            )

    def test_no_such_data_file(self) -> None:
        text = support.replaced(
            GOOD, ("samples = 200", 'kind = "file"\npath = "no.st"')
        )
        self.refuse_recipe(text, None, r"no\.st")

    # Folders.

    def test_unwritable_folders(self) -> None:
        self.place.write("race.toml", GOOD)
        self.place.write("file", "in the way\n")
        self.place.write("full/thing", "mine\n")
        for command in ("run", "emit", "parity"):
            for out in ("/proc/nowhere", "file/below", "file"):
                self.refuse(command, "race.toml", "--out", out, says=[out, r"\n  \S"])
        for command in ("run", "parity"):
            self.refuse(
                command, "race.toml", "--out", "full", says=["holds", r"\n  \S"]
            )
        self.assertEqual((self.place.path / "file").read_text(), "in the way\n")
        self.refuse("run", "--resume", "full", says=["no run directory", r"\n  \S"])
        self.refuse("run", "--resume", "nowhere", says=["no run directory", r"\n  \S"])
        self.refuse("report", "full", says=["no run directory", r"\n  \S"])

    def test_a_run_whose_data_was_changed_is_not_resumed(self) -> None:
        """Its held-out rows are cut from the text anew, and its rows may be yours."""
        words = " ".join(f"word{i % 37}" for i in range(4000))
        self.place.write("texts/a.txt", words)
        self.place.write("texts/b.txt", words)
        self.place.write("lm.ir", LANGUAGE_MODEL)
        recipe = support.recipe(
            ['framework = "torch"'],
            top='workload = "lm.ir"\nbatch = 50\nalpha = 0.05\nmargin = 0.5\n',
            data='kind = "text"\npath = "texts"\n',
            fit="epochs = 1\nrows = 5\n",
        )
        self.place.write("race.toml", recipe)
        begun = self.place.run("run", "race.toml", "--out", "r")
        self.assertEqual(begun.code, 1, "nothing to race with: " + begun.err)
        again = self.place.run("run", "--resume", "r")
        self.assertEqual(again.code, 1, "unchanged: " + again.err)
        key = [r"race\.toml:\d+", r"data\.path", r"\n  \S.*start a new run"]
        resume = ("run", "--resume", "r")
        self.place.write("texts/b.txt", words + " more")
        self.refuse(*resume, says=["texts/b.txt' was changed", *key])
        (self.place.path / "texts/b.txt").unlink()
        self.refuse(*resume, says=["texts/b.txt' was taken away", *key])
        self.place.write("texts/b.txt", words)
        self.place.write("texts/c.txt", words)
        self.refuse(*resume, says=["texts/c.txt' was added", *key])
        (self.place.path / "texts/c.txt").unlink()
        rows = self.place.path / "r/scripts/data.safetensors"
        rows.write_bytes(rows.read_bytes()[:-1] + b"\x07")
        self.refuse(*resume, says=["data.safetensors' was changed", *key])
        rows.unlink()
        self.refuse(*resume, says=["data.safetensors", r"\n  \S.*start a new run"])

    def test_a_name_that_leads_out_of_the_folder_of_runs(self) -> None:
        self.place.write("race.toml", 'name = "../../evil\\u001b"\n' + GOOD)
        begun = self.place.run("run", "race.toml")
        self.assertEqual(begun.code, 1, "nothing to race with: " + begun.err)
        (run,) = (self.place.path / "runs").iterdir()
        self.assertRegex(run.name, r"^\.\._\.\._evil_-\d+")

    def test_more_recipes_than_a_suite_has(self) -> None:
        self.place.write("race.toml", GOOD)
        many = ", ".join(['"race.toml"'] * 1001)
        self.place.write("many.toml", f'name = "many"\nrecipes = [{many}]\n')
        says = [r"many\.toml: 1001 recipes", r"\n  \S"]
        self.refuse("suite", "many.toml", "--out", "s", says=says)

    def test_more_columns_than_a_table_of_series_has(self) -> None:
        names = ",".join(f"c{i}" for i in range(300_000))
        self.place.write("wide.csv", f"{names}\n{names}\n")
        says = [r"wide\.csv:1: has 300000 columns", r"\n  \S"]
        self.refuse("history", "--read", "wide.csv", says=says)

    def test_a_report_that_cannot_be_written(self) -> None:
        self.place.write("race.toml", GOOD)
        run = self.place.run("run", "race.toml", "--out", "r")
        self.assertEqual(run.code, 1, "nothing to race with: " + run.err)
        self.place.ok("report", "r")
        for html in ("/proc/nowhere/r.html", "race.toml/r.html"):
            got = self.place.run("report", "r", "--html", html)
            self.assertEqual(got.code, 2, got.err)
            self.assertIn(str(Path(html).parent), got.err)
            self.assertRegex(got.err, r"\n  \S")

    def test_without_a_home(self) -> None:
        """Nothing that is run is kept in a folder that everybody may write to."""
        self.place.write("race.toml", GOOD)
        gone = ("HOME", "BAKEOFF_HOME", "XDG_DATA_HOME")
        bare = {k: v for k, v in os.environ.items() if k not in gone}

        def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
            return support.called(
                [str(support.BAKEOFF), *arguments], cwd=self.place.path, env=bare
            )

        for command in (
            ["env", "list"],
            ["data", "mnist"],
            ["run", "race.toml", "--out", "r"],
        ):
            got = ask(*command)
            self.assertEqual(got.returncode, 2, got.stderr)
            self.assertRegex(got.stderr, r"HOME is not set\n  set BAKEOFF_HOME")
        for command in (["recipe", "race.toml"], ["recipes"]):
            self.assertEqual(ask(*command).returncode, 0, command)

    def test_a_record_that_cannot_be_kept_is_not_measured(self) -> None:
        got = support.called(
            [str(support.BAKEOFF), "machine"],
            env={**self.place.variables, "BAKEOFF_HOME": "/proc/none"},
        )
        self.assertEqual(got.returncode, 2, got.stderr)
        self.assertIn("/proc/none", got.stderr)
        self.assertNotIn("clock", got.stderr)

    def test_out_of_memory(self) -> None:
        """A record that does not fit into memory: a message, no abort."""
        self.place.write("race.toml", GOOD)
        self.place.run("run", "race.toml", "--out", "r")
        with (self.place.path / "r/trials.jsonl").open("wb") as file:
            file.truncate(3 << 30)  # sparse
        got = support.called(
            [str(support.BAKEOFF), "report", "r"],
            cwd=self.place.path,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (1 << 30, 1 << 30)
            ),
        )
        self.assertEqual(got.returncode, 2, got.stderr)
        self.assertRegex(got.stderr, r"^bakeoff: out of memory\n  \S")

    def test_full_disk(self) -> None:
        mount = self.place.path / "disk"
        mount.mkdir()
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(mount)],
            capture_output=True,
            check=False,
        )
        if made.returncode != 0:
            self.skipTest("may not mount a file system")
        self.addCleanup(subprocess.run, ["umount", "-l", str(mount)], check=False)
        self.place.write("race.toml", GOOD)
        for command in ("run", "emit", "parity"):
            self.refuse(
                command,
                "race.toml",
                "--out",
                "disk/out",
                says=["No space left on device", r"disk/out/", r"\n  \S"],
            )

    def test_output_that_cannot_be_printed(self) -> None:
        with Path("/dev/full").open("w") as full:
            got = subprocess.run(
                [str(support.BAKEOFF), "ops", "--markdown"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        self.assertEqual(got.returncode, 2)
        self.assertIn("No space left on device", got.stderr)

    def test_a_closed_standard_output_is_not_given_to_a_file(self) -> None:
        command = f"{support.BAKEOFF} ops >&-"
        got = subprocess.run(
            ["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False
        )
        self.assertEqual(got.returncode, 2)
        self.assertIn("Bad file descriptor", got.stderr)

    def test_what_is_no_file_is_called_so(self) -> None:
        os.mkfifo(self.place.path / "pipe")
        self.refuse("history", "--read", "pipe", says=["it is no regular file"])

    def test_bad_configuration(self) -> None:
        self.place.write("race.toml", GOOD)
        config = self.place.path / "home" / "config.toml"
        config.write_text('[environment.torhc]\npython = "/bin/sh"\n')
        self.refuse(
            "run", "race.toml", "--out", "out", says=[r"config\.toml:1", "'torch'"]
        )
        config.write_text('[environment.torch]\npython = "/no/python"\n')
        self.refuse(
            "env", "list", says=[r"config\.toml:2", r"environment\.torch\.python"]
        )
        self.refuse("--config", "no.toml", "env", "list", says=[r"no\.toml"])

    # Command lines.

    def test_command_lines(self) -> None:
        self.refuse("rnu", "race.toml", says=["'rnu'", "did you mean 'run'"])
        self.refuse("run", says=["name a recipe"])
        self.refuse("run", "no.toml", says=[r"no\.toml", r"\n  \S"])
        self.refuse("run", "race.toml", "--frob", says=["--frob"])
        self.refuse("run", "race.toml", "--format", "xml", says=["xml", "markdown"])
        for budget in ("-1", "0s", "2.5pairs", "3weeks", "pairs", "1h30"):
            says = ["--budget", "90s, 3m, 1h, 20pairs"]
            self.refuse("run", "race.toml", "--budget", budget, says=says)
        self.refuse("run", "race.toml", "--until", "dawn", says=["--until", "decided"])
        both = ["--until decided", "--budget", r"\n  leave out one"]
        self.refuse(
            "run", "race.toml", "--until", "decided", "--budget", "3m", says=both
        )
        two = support.recipe(['framework = "torch"', 'framework = "jax"'])
        self.place.write("two.toml", two)
        few = ["--budget: a budget of 2 heats", "allow at least"]
        self.refuse("run", "two.toml", "--budget", "2pairs", says=few)
        self.refuse("run", "race.toml", "--resume", "x", says=["--resume"])
        self.refuse("env", "create", "troch", says=["'troch'", "torch"])
        self.refuse("show", "mnist_cn", says=["'mnist_cn'", "mnist_cnn"])
        self.refuse("data", "cifar", says=["cifar", "mnist"])
        (self.place.path / "there.py").symlink_to("back.py")
        (self.place.path / "back.py").symlink_to("there.py")
        for command, name, why in (
            ("report", 300 * "x", "File name too long"),
            ("check", "there.py/x.py", "Too many levels of symbolic links"),
        ):
            self.refuse(command, name, says=["cannot look at", why, r"\n  \S"])

    def test_help_and_version(self) -> None:
        for command in COMMANDS:
            with self.subTest(" ".join(command)):
                shown = self.place.ok(*command, "--help")
                self.assertRegex(
                    shown.out, rf"Example:\n  .*bakeoff {' '.join(command)}"
                )
        top = self.place.run("--help")
        for command in COMMANDS:
            self.assertIn(command[0], top.out)
        version = self.place.run("--version")
        self.assertEqual(version.code, 0)
        self.assertRegex(version.out, r"^bakeoff \d+\.\d+\.\d+\n$")
        bare = self.place.run()
        self.assertEqual(bare.code, 2)
        self.assertLess(len(bare.out.splitlines()), 12)
        self.assertIn("bakeoff run mnist_cnn", bare.out)
        self.assertIn("bakeoff --help", bare.out)

    def test_shipped_recipes_are_good(self) -> None:
        for recipe in sorted((support.ROOT / "recipes").glob("*.toml")):
            with self.subTest(recipe.name):
                self.place.ok("recipe", recipe)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    support.main()
