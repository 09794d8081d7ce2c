"""Wrong scripts through the gate: each is refused; right ones pass, however written.

python3 -m tests.attacks.parity_test build/dev/bakeoff
python3 -m tests.attacks.parity_test build/dev/bakeoff Wrong.test_torch
python3 -m tests.attacks.parity_test build/dev/bakeoff --table torch att,cnn [NAME...]

Every day a few of each kind, with BAKEOFF_FULL_TESTS=1 all. --table checks nothing; it
prints what the gate says of all wrong and right scripts of a framework and recipes.
A cause that the gate names must be one of those that are true of the script.
"""

from __future__ import annotations

import os
import re
import sys
import unittest
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.tables import FRAMEWORKS, RECIPES, RIGHT, WORKLOADS, WRONG, Script
from tests.cli import support

TOGETHER = 30  # scripts in one recipe

CAUSE = re.compile(r"matches:? (.*)")
# Refused by what was compared, or in words of the worker about what is missing.
REFUSED = re.compile(
    r": DIFFERS\b|on \d devices?, but devices = 2|does not call (its model|optimizer)|None values not supported"
)


@dataclass(frozen=True)
class Said:
    """What the gate says of one script."""

    script: Script
    text: str

    @property
    def passed(self) -> bool:
        return bool(re.search(r": same\b", self.text))

    @property
    def refused(self) -> bool:
        return bool(REFUSED.search(self.text))

    @property
    def causes(self) -> list[str]:
        found: list[str] = CAUSE.findall(self.text)
        return found

    @property
    def false_causes(self) -> list[str]:
        true = self.script.cause
        return [
            c for c in self.causes if not (true and re.search(true, c, re.IGNORECASE))
        ]

    def line(self) -> str:
        word = "passed" if self.passed else "refused" if self.refused else "BROKEN"
        where = re.search(r"first at (.*)", self.text)
        place = where.group(1) if where else ""
        if not (self.passed or self.refused):
            place = " ".join(self.text.split(": ", 1)[-1].split())[:120]
        named = "; ".join(self.causes)
        false = "  <-- FALSE CAUSE" if self.false_causes else ""
        name = f"{self.script.framework} {self.script.recipe} {self.script.name}"
        return f"  {word:8} {name:58} {place:30} {named}{false}"


def gate_recipe(name: str, contenders: Iterable[str]) -> str:
    workload, optimizer = RECIPES[name]
    contenders = list(contenders)
    threads = 2 if "devices" in contenders[0] else 1  # one each
    return support.recipe(
        contenders,
        top=f'workload = "{workload}.ir"\nbatch = 20\nalpha = 0.5\n',
        data="samples = 103\n",
        optimizer=optimizer,
        race=f"parity_steps = 10\nstage_seconds = 120\nthreads = {threads}\n",
    )


def verdicts(text: str) -> dict[str, str]:
    """File name of a contender -> all lines about it."""
    parts = re.split(r"(?m)^(?=[a-z]\S*: )", text)
    return {
        part.split(": ", 1)[0].rpartition(":")[2]: part
        for part in parts
        if part.strip()
    }


class Ground:
    """A place with the workloads, and what Bakeoff emits for them."""

    def __init__(self, environments: Sequence[str]) -> None:
        self.place = support.Place(environments, warm=True)
        for name, text in WORKLOADS.items():
            self.place.write(f"{name}.ir", text)

    def emitted(self, framework: str, recipe: str) -> str:
        folder = f"emitted_{framework}_{recipe}"
        _, contender, file = FRAMEWORKS[framework]
        if not (self.place.path / folder).exists():
            path = self.place.write(f"{folder}.toml", gate_recipe(recipe, [contender]))
            done = self.place.run("emit", path, "--out", folder)
            assert done.code == 0, done.err
        return (self.place.path / folder / file).read_text()

    def ask(self, scripts: Sequence[Script]) -> list[Said]:
        """What the gate says of scripts of one framework and one recipe."""
        framework, recipe = scripts[0].framework, scripts[0].recipe
        source = self.emitted(framework, recipe)
        _, contender, file = FRAMEWORKS[framework]
        head = f"{contender}, " if "-" in framework else ""
        rows = []
        for script in scripts:
            name = f"{script.name}{Path(file).suffix}"
            self.place.write(name, support.replaced(source, *script.changes))
            rows.append(f'{head}script = "{name}"')
        path = self.place.write("asked.toml", gate_recipe(recipe, rows))
        done = self.place.run("parity", path, timeout=3000)
        found = verdicts(done.out)
        suffix = Path(file).suffix
        missing = "no word: " + done.err[-300:]
        return [Said(s, found.get(f"{s.name}{suffix}", missing)) for s in scripts]


def groups(scripts: Iterable[Script]) -> list[list[Script]]:
    """Scripts that can share a recipe, TOGETHER at most."""
    by: dict[tuple[str, str], list[Script]] = {}
    for script in scripts:
        by.setdefault((script.framework, script.recipe), []).append(script)
    return [
        same[first : first + TOGETHER]
        for same in by.values()
        for first in range(0, len(same), TOGETHER)
    ]


def table(said: Sequence[Said]) -> str:
    named = [s for s in said if s.causes]
    head = (
        f"{len(said)} scripts: {sum(s.refused for s in said)} refused, "
        f"{sum(s.passed for s in said)} passed, {len(named)} causes named, "
        f"{sum(bool(s.false_causes) for s in named)} of them false"
    )
    return "\n".join([head, *(s.line() for s in said)])


def everyday(scripts: Sequence[Script]) -> list[Script]:
    """All, or every eighth of them in the quick tier."""
    return list(scripts) if support.FULL else list(scripts[::8])


class Gate(unittest.TestCase):
    def said(self, scripts: Sequence[Script], *frameworks: str) -> list[Said]:
        environments = sorted({FRAMEWORKS[name][0] for name in frameworks})
        support.need(*environments)
        ground = Ground(environments)
        self.addCleanup(ground.place.close)
        mine = [s for s in scripts if s.framework in frameworks]
        said = [s for group in groups(everyday(mine)) for s in ground.ask(group)]
        print(table(said), file=sys.stderr, flush=True)
        self.assertEqual(ground.place.none_left(), {})
        return said


class Edits(unittest.TestCase):
    """Also in the quick tier: emitted scripts change, and edits then miss their place."""

    def test_each_has_its_place_in_what_is_emitted(self) -> None:
        ground = Ground([])
        self.addCleanup(ground.place.close)
        for script in WRONG + RIGHT:
            with self.subTest(script.name, of=f"{script.framework} {script.recipe}"):
                source = ground.emitted(script.framework, script.recipe)
                self.assertNotEqual(support.replaced(source, *script.changes), source)


class EachFramework:
    def check(self, *frameworks: str) -> None:
        raise NotImplementedError

    def test_torch(self) -> None:
        self.check("torch")

    @support.full_tier
    def test_jax(self) -> None:
        self.check("jax")

    @support.full_tier
    def test_tensorflow(self) -> None:
        self.check("tensorflow")

    @support.full_tier
    def test_keras(self) -> None:
        self.check("keras-tensorflow", "keras-torch", "keras-jax")

    @support.full_tier
    def test_keras2(self) -> None:
        self.check("keras2")

    @support.full_tier
    def test_libtorch(self) -> None:
        self.check("libtorch")


@support.full_tier
class Wrong(EachFramework, Gate):
    def check(self, *frameworks: str) -> None:
        for said in self.said(WRONG, *frameworks):
            with self.subTest(said.script.name, framework=said.script.framework):
                self.assertTrue(said.refused, said.text)
                self.assertEqual(said.false_causes, [], said.text)

    @support.full_tier
    def test_devices(self) -> None:
        self.check("jax-devices", "tensorflow-devices")


@support.full_tier
class Right(EachFramework, Gate):
    def check(self, *frameworks: str) -> None:
        for said in self.said(RIGHT, *frameworks):
            with self.subTest(said.script.name, framework=said.script.framework):
                self.assertTrue(said.passed, said.text)


def show(framework: str, recipes: str = "", *names: str) -> None:
    """--table: prints what the gate says."""
    wanted = recipes.split(",") if recipes else list(RECIPES)
    ground = Ground([FRAMEWORKS[framework][0]])
    try:
        for title, scripts in (("wrong", WRONG), ("right", RIGHT)):
            mine = [
                s
                for s in scripts
                if s.framework == framework
                and s.recipe in wanted
                and (not names or s.name in names)
            ][:: int(os.environ.get("BAKEOFF_ATTACK_STRIDE", "1"))]
            said = []
            for group in groups(mine):
                said += ground.ask(group)
                print(f"... {len(said)} of {len(mine)}", file=sys.stderr)
                if names:
                    print("\n".join(s.text for s in said))
            if said:
                print(f"{title} {table(said)}", flush=True)
    finally:
        ground.place.close()


if __name__ == "__main__":
    if "--table" in sys.argv:
        support.BAKEOFF = Path(sys.argv[1]).resolve()
        show(*sys.argv[sys.argv.index("--table") + 1 :])
    else:
        support.main()
