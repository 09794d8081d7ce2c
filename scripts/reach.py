"""Which tests a change can reach, and why: the rooms above it, a table, and words.

Usage: reach.py BUILD_FOLDER [BASE]            (scripts/test --changed [BASE])

BASE: a commit, by default where the upstream branch or, without one, `main` leaves this
one; what is not committed counts too. Prints what it chose and what it left out on
standard error, and the names of the tests, a line each, on standard output.

Four ways lead from a changed file to a test:
- Includes. A unit test runs where its file reaches a changed header or source through
  includes, a header and its .cc taken as one.
- scripts/reach.toml, for the tests that run whole programs.
- Words. A test runs where it looks for a text that stands in a line that the change
  takes away, and in none that it brings: what a message said before.
- Itself: its own file changed.
What is left out can still fail, since nearly all of the tests that run the program use
nearly all of its rooms; `make test` runs everything.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
SUITE = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP)\((\w+),", re.M)
CXX_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# What says something to users, and so may say something else than a test looks for.
SPEAK = (
    "src",
    "runners",
    "python",
    "recipes",
    "docs",
    ":!*_test.cc",
    ":!runners/tests",
)
LEAST_WORDS = 12  # characters; shorter texts stand everywhere
NUMBER = re.compile(r"\d[\d.,]*")
REGEX = re.compile(r"\\.|[\[\](){}.*+?^$|]")


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern of paths or names fits: ** any depth, * within one folder."""
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    ways = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    expression = "".join(ways.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(expression, path) is not None


@dataclass(frozen=True)
class Test:
    name: str
    command: str
    seconds: float  # what the last run took, or what its list says

    def fits(self, pattern: str) -> bool:
        expression = re.escape(pattern).replace(r"\*", ".*")
        return re.fullmatch(expression, self.name) is not None


@dataclass
class Change:
    """Paths that differ, and the texts of the lines that go and come."""

    paths: list[str]
    gone: str = ""
    come: str = ""


@dataclass
class Choice:
    reasons: dict[str, set[str]] = field(default_factory=dict)  # test -> why

    def add(self, names: Iterable[str], why: str) -> None:
        for name in names:
            self.reasons.setdefault(name, set()).add(why)


def git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True).stdout


def default_base() -> str:
    for branch in ("@{upstream}", "origin/main", "main"):
        base = git("merge-base", "HEAD", branch).strip()
        if base:
            return base
    return "HEAD"


def change_since(base: str) -> Change:
    if not git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        raise SystemExit(f"reach: '{base}' is no commit of this repository")
    paths = git("diff", "--name-only", "--no-renames", base).splitlines()
    paths += git("ls-files", "--others", "--exclude-standard").splitlines()
    lines = git("diff", "--unified=0", "--no-renames", base, "--", *SPEAK)
    gone = [line[1:] for line in lines.splitlines() if re.match("-(?!--)", line)]
    come = [line[1:] for line in lines.splitlines() if re.match(r"\+(?!\+\+)", line)]
    return Change(sorted(set(paths)), joined(gone), joined(come))


def joined(lines: list[str]) -> str:
    """Lines of a source as one text: a literal that is continued reads as one."""
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(lines))


def tests_of(build: Path) -> list[Test]:
    # From a folder of its own: in the build's, ctest would end the log of a run that goes on there.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{build.resolve()}")')
        listed = subprocess.run(
            ["ctest", "--test-dir", folder, "--show-only=json-v1"],
            capture_output=True,
            text=True,
            check=True,
        )
    costs = {}
    data = build / "Testing" / "Temporary" / "CTestCostData.txt"
    for line in data.read_text().splitlines() if data.exists() else ():
        words = line.rsplit(" ", 2)
        if len(words) == 3:
            costs[words[0]] = float(words[2])
    tests = []
    for test in json.loads(listed.stdout)["tests"]:
        told = {row["name"]: row["value"] for row in test.get("properties", ())}
        seconds = costs.get(test["name"]) or float(told.get("COST", 0))
        tests.append(Test(test["name"], " ".join(test.get("command", ())), seconds))
    return tests


def is_unit_test(test: Test) -> bool:
    return "--gtest_filter" in test.command or test.name.endswith(".not_built")


def stem(path: str) -> str:
    return path.removeprefix("src/").rpartition(".")[0]


def reached_sources(changed: Iterable[str], root: Path = ROOT) -> set[str]:
    """Sources below src/, without their endings, that include what changed."""
    users: dict[str, set[str]] = {}
    for path in (root / "src").rglob("*"):
        if path.suffix in (".h", ".cc", ".inc"):
            file = stem(str(path.relative_to(root)))
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                users.setdefault(stem(name), set()).add(file)
    ahead = {stem(path) for path in changed if path.startswith("src/")}
    reached: set[str] = set()
    while ahead:
        reached |= ahead
        ahead = {user for file in ahead for user in users.get(file, ())} - reached
    return reached


def suites_in(files: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Suites of GoogleTest -> the file below src/ that has them."""
    found: dict[str, str] = {}
    for file in files:
        path = root / "src" / f"{file}.cc"
        if file.endswith("_test") and path.exists():
            found |= dict.fromkeys(SUITE.findall(path.read_text("utf-8")), file)
    return found


def room_program(file: str) -> str:
    """The test program of a test file: report/html_test -> report."""
    parts = file.split("/")[:-1]
    return "_".join(parts[:2])


def by_includes(change: Change, tests: list[Test], choice: Choice) -> None:
    suites = suites_in(reached_sources(change.paths))
    rooms = {room_program(file) for file in suites.values()}
    for test in tests:
        program, _, suite = test.name.partition(".")
        file = next((suites[s] for s in suite.split("/") if s in suites), None)
        if file is not None and room_program(file) == program:
            choice.add([test.name], "includes")
        elif program in rooms and suite == "not_built":
            choice.add([test.name], "includes")


def by_table(change: Change, tests: list[Test], choice: Choice) -> None:
    for rule in tomllib.loads((ROOT / "scripts" / "reach.toml").read_text())["rule"]:
        if any(matches(p, path) for p in rule["when"] for path in change.paths):
            for pattern in rule["run"]:
                choice.add((t.name for t in tests if t.fits(pattern)), "table")


def test_files(test: Test) -> list[str]:
    """The Python files that a test of ctest runs."""
    command = test.command.rpartition(" -- ")[2]  # of tests/stamped.py: what it runs
    if "scripts/run_pytest " in command:
        return [f"runners/{file}" for file in re.findall(r"tests/\S+\.py", command)]
    if module := re.search(r"-m (tests\.[\w.]+)", command):
        return [module[1].replace(".", "/") + ".py"]
    return re.findall(r"\b((?:tests|prove)/\S+\.py)", command)[:1]


def texts_of(path: Path) -> Iterator[str]:
    """What a test may look for: its literals; of a regular expression its plain parts."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        literals = [
            node.value
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    else:
        literals = CXX_TEXT.findall(joined(source.split("\n")))
    for literal in literals:
        for text in {literal, *REGEX.split(literal)}:
            if len(text.strip()) >= LEAST_WORDS and "\n" not in text:
                yield text


def stands_in(text: str, source: str) -> bool:
    """Whether a source says a text, where its numbers may be `{}` in the source."""
    if not NUMBER.search(text):
        return text in source
    parts = (re.escape(part) for part in NUMBER.split(text))
    return re.search(r"(?:\{[^{}]*\}|\d[\d.,]*)".join(parts), source) is not None


def looks_for(path: Path, change: Change) -> str:
    """A text that a test file looks for and the change takes away, "" for none."""
    for text in texts_of(path):
        if stands_in(text, change.gone) and not stands_in(text, change.come):
            return text.strip()
    return ""


def by_words(change: Change, tests: list[Test], choice: Choice) -> None:
    if not change.gone:
        return
    for test in tests:
        for file in test_files(test):
            if text := looks_for(ROOT / file, change):
                choice.add([test.name], f"looks for '{text}'")
    paths = (ROOT / "src").rglob("*_test.cc")
    found = {str(p.relative_to(ROOT / "src"))[:-3]: looks_for(p, change) for p in paths}
    for suite, file in suites_in(file for file, text in found.items() if text).items():
        names = (t.name for t in tests if t.name == f"{room_program(file)}.{suite}")
        choice.add(names, f"looks for '{found[file]}'")


def chosen(change: Change, tests: list[Test]) -> Choice:
    choice = Choice()
    by_includes(change, tests, choice)
    by_table(change, tests, choice)
    by_words(change, tests, choice)
    paths = set(change.paths)
    own = (test.name for test in tests if paths & set(test_files(test)))
    choice.add(own, "its own file changed")
    return choice


def tell(change: Change, tests: list[Test], choice: Choice) -> None:
    def say(text: str) -> None:
        print(text, file=sys.stderr)

    def whole_programs(names: Iterable[str]) -> str:
        return " ".join(sorted(name for name in names if name not in units))

    units = {test.name for test in tests if is_unit_test(test)}
    seconds = sum(test.seconds for test in tests if test.name in choice.reasons)
    say(
        f"{len(change.paths)} files changed; {len(choice.reasons)} of {len(tests)} tests"
    )
    say(f"  reach them, {seconds:.0f} s of processes by the last run or the lists")
    say(f"run: {whole_programs(choice.reasons)}, and unit tests by their includes")
    for name, reasons in sorted(choice.reasons.items()):
        for why in sorted(reasons - {"includes", "table", "its own file changed"}):
            say(f"  {name} {why}, which the change takes away")
    left = [test.name for test in tests if test.name not in choice.reasons]
    say(f"left out: {whole_programs(left)}")
    say(f"  and {sum(name in units for name in left)} suites of unit tests")


def main() -> int:
    build = Path(sys.argv[1])
    change = change_since(sys.argv[2] if len(sys.argv) > 2 else default_base())
    tests = tests_of(build)
    choice = chosen(change, tests)
    tell(change, tests, choice)
    print("\n".join(sorted(choice.reasons)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
