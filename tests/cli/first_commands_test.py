"""What a newcomer types first, from an empty folder: recipes inside the program, changed by options, help, typos.

Only running an emitted script needs a framework (torch):
python3 -m tests.cli.first_commands_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import tomllib
import unicodedata
import unittest
from pathlib import Path

from tests.cli import support

RECIPES = sorted((support.ROOT / "recipes").glob("*.toml"))
# Words of tables and reports that no newcomer knows.
WORDS = (
    "heat burst block round tie referee gate parity twin dropped broken beside undecided contender "
    "track equalised margin interval ratio audit profile frozen recipe leader warm-up"
).split()
# A wrong command line, and what the message says of it; never another of its words.
TYPOS: dict[str, tuple[str, str]] = {
    "run x.toml --budgt 3": ("run has no option '--budgt'", "did you mean '--budget'?"),
    "run --budgt=3 x.toml": ("run has no option '--budgt'", "did you mean '--budget'?"),
    "ops --workload": ("ops has no option '--workload'", "did you mean '--workloads'?"),
    "--verison": ("the program has no option '--verison'", "did you mean '--version'?"),
    "env create --quick": ("env create has no option '--quick'", "env create --help"),
    "env crate": ("env has no command 'crate'", "did you mean 'create'?"),
    "env": ("env: say what it is to do", "one of: create, list, doctor"),
    "run x.toml --budget": ("run: --budget needs a value", "--budget 6m"),
    "run x.toml y.toml": ("run does not take 'y.toml'", "run --help"),
    "run x.toml --resume y": ("--resume", "leave out one of the two"),
    "run --resume y --batch 3": ("--batch 3 changes a recipe", "leave out one"),
    "emit mlp_small": ("emit: --out is missing", "bakeoff emit"),
    "selftest --minutes soon": ("--minutes: 'soon' is no number", "selftest --help"),
    "report x --format xlm": ("--format: cannot be 'xlm'", "one of: text, json"),
    "run mlp_small --batch ''": ("--batch: needs a value", "run --help"),
    "run ''": ("run: name a recipe", "bakeoff recipes"),
    "run .": ("'.' is a folder, not a recipe", "bakeoff recipes"),
    "--config c.toml run x.toml --budgt": ("run has no option '--budgt'", "--budget"),
    "help \x1b[31mx": ("there is no command and no word 'x'", "help terms"),
    "run mlp_small --set contenders=3": ("--set contenders=3: 'contenders'", "for ex"),
    "run mlp_small --set data.kind=npz": ('data.kind = "npz" needs', "add path"),
    "emit mlp_small --out o --set workload=x.ir": ("x.ir", "docs/ir.md"),
    "run mlp_small --set x": ("--set: must be KEY=VALUE", "run --help"),
    "run mlp_small --set race.thread=2": ("'race.thread'", "'race.threads'"),
    "run mlp_small --batch 0": ("--batch 0: 'batch' is 0", "at least 1"),
    "run mlp_small --batch x": ("--batch x: 'batch' must be", "for example batch ="),
    "emit mlp_small --lr x --out o": ("--lr x: 'optimizer.lr'", "for example lr ="),
    "run mlp_small --batch 32,64": ("'batch' must be an", "search.batches=[32,64]"),
    "run mlp_small --frameworks torch,tf": ("'tf'", "did you mean 'tensorflow'?"),
    "suite quik": ("'quik'", "did you mean 'quick'?"),
    "report x y": ("report shows one run, and 'y' is a second one", "bakeoff suite"),
    "parity mlp_small --frameworks torhc": ("'torhc'", "did you mean 'torch'?"),
    "run mlp_smal": ("'mlp_smal'", "did you mean 'mlp_small'?"),
    "run recipes/mlp_smal.toml": ("mlp_smal.toml", "did you mean 'mlp_small'?"),
    "run net.py": ("'net.py' is a Python script", "bakeoff check net.py"),
    "init mlp_smal": ("'mlp_smal'", "did you mean 'mlp_small'?"),
    "help haet": ("'haet'", "did you mean 'heat'?"),
    "help rnu": ("'rnu'", "did you mean 'run'?"),
    "exec none.py": ("there is no script 'none.py'", "bakeoff emit"),
    "tune net.py --batch 3": ("--batch 3 changes a recipe", "leave it out"),
}


def width(line: str) -> int:
    """Columns of a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in line
    )


class FirstCommands(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)

    def out(self, *words: str | Path, code: int = 0) -> str:
        done = self.place.run(*words)
        self.assertEqual(done.code, code, f"{words}\n{done.out}{done.err}")
        return done.out

    def test_every_recipe_is_inside(self) -> None:
        listed = self.out("recipes")
        for recipe in RECIPES:
            self.assertRegex(listed, rf"(?m)^{recipe.stem} +\S")
            for name in (recipe.stem, recipe.name, f"recipes/{recipe.name}"):
                done = self.place.ok("recipe", name)
                self.assertIn(f"recipes/{recipe.name} inside this program", done.err)
        headings = re.findall(r"(?m)\A.*$|(?<=\n\n).*(?=\n\n)", listed)
        self.assertEqual(headings[0], "First steps")
        self.assertIn("LoRA\n\nmistral_lora_tiny", listed)
        self.assertEqual(sorted(set(headings)), sorted(headings))
        self.assertIn("`bakeoff data digits`", listed)
        self.assertIn("workload digits_cnn", self.out("show", "digits_cnn"))
        self.assertIn("conv1.weight", self.out("show", "recipes/digits_cnn.toml"))

    def test_a_file_on_disk_wins(self) -> None:
        mine = support.recipe(['framework = "torch"'])
        self.place.write("mlp.ir", support.MLP)
        self.place.write("mnist_cnn.toml", mine)
        for name in ("mnist_cnn", "mnist_cnn.toml"):
            self.assertIn("mnist_cnn.toml: tiny_mlp, 1 c", self.out("recipe", name))
        self.assertIn("10 contenders", self.out("recipe", "recipes/mnist_cnn.toml"))
        self.place.write("recipes/mnist_cnn.toml", mine.replace("mlp.ir", "../mlp.ir"))
        self.assertIn("tiny_mlp", self.out("recipe", "recipes/mnist_cnn.toml"))

    def test_init_writes_and_never_overwrites(self) -> None:
        said = self.out("init")
        self.assertEqual(said, "wrote race.toml\nnext: bakeoff run race.toml\n")
        self.assertIn("contenders", self.out("recipe", "race.toml"))
        (self.place.path / "race.toml").write_text("mine")
        refused = self.place.run("init")
        self.assertEqual(refused.code, 2)
        self.assertRegex(refused.err, r"'race\.toml' exists already\n  .*--force")
        self.assertEqual((self.place.path / "race.toml").read_text(), "mine")
        self.out("init", "--force")
        # What a recipe names is written, too; all of it or nothing.
        self.place.write("digits_cnn.ir", "mine")
        self.assertEqual(self.place.run("init", "digits_cnn").code, 2)
        self.assertFalse((self.place.path / "digits_cnn.toml").exists())
        (self.place.path / "digits_cnn.ir").unlink()
        self.assertIn("wrote digits_cnn.ir\n", self.out("init", "digits_cnn"))
        self.out("recipe", "digits_cnn.toml")
        self.out("init", "mnist_4060ti_full")
        self.assertTrue((self.place.path / "published/mnist_cnn_4060ti.csv").exists())
        (self.place.path / "mlp_deep.toml").symlink_to("nowhere")
        self.assertEqual(self.place.run("init", "mlp_deep").code, 2)

    def test_options_change_the_recipe_and_the_record(self) -> None:
        changes = (
            "--frameworks torch,tensorflow --batch 64 --seed 3 --set race.pin=none"
        )
        done = self.place.run("run", "mlp_small", *changes.split(), "--out", "r")
        # No environment is there: nothing is ranked, and one command is named.
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(
            done.err,
            r"cannot start: the environment of each was never created; `bakeoff env create [a-z -]+` makes them",
        )
        self.assertNotIn("missing: missing", self.out("env", "list"))
        self.assertRegex(
            done.err.splitlines()[-1], "env create torch tensorflow` makes them$"
        )
        recorded = tomllib.loads(self.recorded("r"))
        self.assertEqual((recorded["batch"], recorded["seed"]), (64, 3))
        self.assertEqual(recorded["race"]["pin"], "none")
        used = {c["framework"] for c in recorded["contenders"]}
        self.assertEqual(used, {"torch", "tensorflow"})
        self.assertIn(changes, self.recorded("r"))
        self.assertIn("first model", self.recorded("r"), "comments stay")
        self.assertIn("batch 64", self.out("report", "r"))
        resumed = self.place.run("run", "--resume", "r")
        self.assertEqual(resumed.code, 1, resumed.err)
        self.assertIn("batch 64", resumed.out)
        # The recorded text is a recipe itself.
        self.place.write("again.toml", self.recorded("r"))
        self.assertIn("4 contenders", self.out("recipe", "again.toml"))
        # A framework that the recipe lacks is added, and the scenario's own are known.
        listed = self.out("recipe", "mlp_small", "--frameworks", "keras2,jax")
        self.assertEqual(listed.splitlines()[1:], ["  jax", "  keras2"])
        refused = self.place.run("parity", "mlp_small", "--frameworks", "onnxruntime")
        self.assertEqual(refused.code, 2)
        self.assertRegex(refused.err, "^bakeoff: --frameworks onnxruntime: ")

    def test_an_environment_that_is_missing_is_named(self) -> None:
        done = self.place.run("parity", "mlp_small", "--frameworks", "jax")
        self.assertIn(
            "jax cannot start: its environment was never created; `bakeoff env create jax` makes it",
            done.err,
        )

    def recorded(self, run: str) -> str:
        text = (self.place.path / run / "run.json").read_text()
        return str(json.loads(text)["recipe_text"])

    def test_a_script_runs_with_the_python_of_its_framework(self) -> None:
        support.need("torch")
        self.place.set_interpreters({"torch": support.interpreter("torch")})
        emitted = self.place.ok(
            "emit", "mlp_small", "--frameworks", "torch", "--out", "s"
        )
        self.assertIn("bakeoff exec s/train_torch.py", emitted.err)
        ran = self.place.ok("exec", "s/train_torch.py", "--steps", "2")
        self.assertRegex(ran.out, r"step +0 +loss \d")
        self.place.write(  # names its framework, which it need not import here
            "mine.py",
            "import sys\nif len(sys.argv) > 9:\n    import torch\n"
            "print(sys.argv[1:])\nsys.exit(len(sys.argv))\n",
        )
        mine = self.place.run("exec", "--framework", "torch", "mine.py", "--help", "--")
        self.assertEqual((mine.code, mine.out), (3, "['--help', '--']\n"))
        elsewhere = self.place.run(
            "--config", "home/config.toml", "exec", "mine.py", "--lr", "1"
        )
        self.assertEqual((elsewhere.code, elsewhere.out), (3, "['--lr', '1']\n"))
        self.assertEqual(self.place.none_left(), {})
        self.place.set_interpreters({})
        missing = self.place.run("exec", "s/train_torch.py")
        self.assertEqual(missing.code, 2)
        self.assertIn("bakeoff env create torch", missing.err)
        self.place.write("none.py", "print(1)\n")
        self.assertRegex(
            self.place.run("exec", "none.py").err,
            r"imports no framework.*\n  .*--framework",
        )

    def test_words_and_commands_are_explained(self) -> None:
        everything = self.out("explain-terms")
        self.assertEqual(everything, self.out("help", "terms"))
        for word in WORDS:
            self.assertRegex(self.out("help", word), rf"(?mi)^[^:]*\b{word}\b[^:]*: \S")
        self.assertEqual(self.out("help", "HEATS"), self.out("help", "heat"))
        self.assertEqual(self.out("help", "run"), self.out("run", "--help"))
        self.assertEqual(self.out("help"), self.out("--help"))
        self.assertIn("env create", self.out("help", "env", "create"))
        self.assertIn("told apart", self.out("help", "told", "apart"))

    def test_keys_of_recipes_and_pages_are_explained(self) -> None:
        self.assertIn("batch (key of recipes; integer >= 1", self.out("help", "batch"))
        self.assertIn("search.batches (key of", self.out("help", "search"))
        self.assertIn("search.batches (key of", self.out("help", "search.batches"))
        self.assertIn("setting of contenders of torch", self.out("help", "compile"))
        for word in (
            "refused",
            "cold",
            "limited by",
            "first step",
            "not judged",
            "wait",
        ):
            self.assertIn(word, self.out("help", word))
        listed = self.out("help", "docs")
        for file in [*(support.ROOT / "src").rglob("*.cc"), *RECIPES]:
            for page in re.findall(r"docs/[a-z_]+\.md", file.read_text()):
                if file.name.endswith("_test.cc") or page == "docs/benchmarks.md":
                    continue
                self.assertIn(f"{page} ", listed, f"{file} names it")
        for name in ("docs/ir.md", "ir.md"):
            self.assertEqual(
                self.out("help", name), (support.ROOT / "docs/ir.md").read_text()
            )
        self.assertEqual(
            self.out("help", "recipe.md"), (support.ROOT / "docs/recipe.md").read_text()
        )
        done = self.place.run("help", "none.md")
        self.assertEqual(done.code, 2)
        self.assertIn("`bakeoff help docs`", done.err)

    def test_commands_of_the_documents_are_right(self) -> None:
        """As far as that shows without racing: recipes, options that change them, commands."""
        text = (support.ROOT / "docs/commands.md").read_text()
        readme = (support.ROOT / "README.md").read_text()
        text += re.sub(r"^\|[^|]*\| `(bakeoff .*?)` \|.*", r"\1", readme, flags=re.M)
        commands = re.findall(r"^bakeoff ([a-z-]+)(.*?)(?:  +#.*| *\\n)?$", text, re.M)
        self.assertGreater(len(commands), 30)
        top = self.out("--help")
        checked = 0
        for command, rest in commands:
            self.assertRegex(top, rf"(?m)^  {command} ")
            words = rest.split("  #")[0].split()
            verb = words[:1] if command == "fleet" else []
            shown = self.out(command, *verb, "--help")
            for option in re.findall(
                r"--[a-z-]+", rest.split(" -- ")[0].split(" #")[0]
            ):
                if command != "exec":
                    self.assertIn(f"  {option}", shown, f"{command} {rest}")
            if command in ("run", "tune", "parity", "emit") and words[0][0] not in "-<":
                if words[0].endswith((".py", "my.toml", "race.toml")):
                    continue
                changes = re.findall(r"--(?:frameworks|batch|set) [^ ]+", rest)
                self.out("recipe", words[0], *" ".join(changes).split())
                checked += 1
        self.assertGreater(checked, 10)

    def test_wrong_command_lines(self) -> None:
        for line, (what, remedy) in TYPOS.items():
            with self.subTest(line):
                got = self.place.run(*shlex.split(line))
                self.assertEqual((got.code, got.out), (2, ""), got.err)
                first, second = got.err.rstrip("\n").split("\n")
                self.assertTrue(first.startswith("bakeoff: "), got.err)
                self.assertIn(what, first)
                self.assertRegex(second, f"^  .*{re.escape(remedy)}")
                if "--budgt" in line:
                    self.assertNotIn("x.toml", got.err)

    def test_no_line_is_wider_than_the_output(self) -> None:
        top = self.out("--help")
        names = re.findall(r"^  ([a-z-]+) {2,}", top, re.MULTILINE)
        self.assertIn("explain-terms", names)
        commands = [[name, "--help"] for name in names]
        commands += [["recipes"], ["env", "list"], ["doctor"], ["ops"], ["help"]]
        commands += [["ops", "--workloads"], ["explain-terms"], ["help", "heat"]]
        for columns in (40, 60, 80, 120, 200):
            self.place.variables["COLUMNS"] = str(columns)
            for command in commands:
                lines = self.place.run(*command).out.splitlines()
                self.assertGreater(len(lines), 0, command)
                for line in lines:
                    self.assertLessEqual(width(line), columns, f"{command}: {line}")

    def on_a_terminal(self, **variables: str) -> str:
        """The report of a run as a terminal gets it."""
        ours, theirs = pty.openpty()
        environment = {**self.place.variables, "TERM": "xterm", **variables}
        for name in ("NO_COLOR", "CLICOLOR_FORCE"):
            if name not in variables:
                environment.pop(name, None)
        subprocess.run(
            [str(support.BAKEOFF), "report", "r"],
            cwd=self.place.path,
            env=environment,
            stdout=theirs,
            stderr=theirs,
            check=True,
        )
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 1 << 16):
                text += piece
        except OSError:  # its end
            pass
        os.close(ours)
        return text.decode()

    def test_colours_are_left_out_where_they_are_not_wanted(self) -> None:
        self.place.run("run", "mlp_small", "--frameworks", "torch", "--out", "r")
        self.assertIn("\x1b[", self.on_a_terminal())
        self.assertNotIn("\x1b", self.on_a_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal(NO_COLOR="1", CLICOLOR_FORCE="1"))
        self.assertIn("\x1b[", self.on_a_terminal(NO_COLOR=""))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", self.out("report", "r"))
        self.place.variables["CLICOLOR_FORCE"] = "1"
        self.assertIn("\x1b[", self.out("report", "r"))

    def test_what_the_budget_leaves_out_is_said_first(self) -> None:
        got = self.place.run(
            *("run", "mlp_small", "--frameworks", "torch", "--out", "r"),
            *("--set", "fit.epochs=1", "--set", "budget.minutes=3"),
        )
        begin = got.err.index("the recipe's budget of 3 min is that of proofs and race")
        self.assertLess(begin, got.err.index("run directory"))
        self.assertIn("after it [fit] takes the time needed", got.err)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    support.main()
