"""Rooms include downwards only: the floors of docs/architecture.md, enforced.

Run alone: python3 tests/layers_test.py
"""

from __future__ import annotations

import re
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import|import ([\w.]+))", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
ROOM_CALL = re.compile(r"bakeoff_room\(([^)]*)\)")
# Folders of rooms of one kind -> their name in the block of floors.
HALLS = {"emit": "emit/<framework>", "study": "study/<name>"}
KEYWORDS = {"NAME", "DIR", "SOURCES", "DEPS", "TESTS", "TEST_DEPS"}


def read_floors(document: str) -> dict[str, int]:
    """Room -> height, from the block of the architecture document."""
    block = re.search(r"```floors\n(.*?)```", document, re.DOTALL)
    if block is None:
        raise ValueError("no block ```floors")
    lines = [line.split() for line in block[1].splitlines() if line.strip()]
    return {room: -depth for depth, line in enumerate(lines) for room in line}


@dataclass(frozen=True)
class Tree:
    """A checkout: the folder and its floors."""

    root: Path
    floors: dict[str, int]

    def room_of(self, path: Path) -> str:
        """The room of a file, by its path below src/."""
        parts = path.parts
        if parts[0] in HALLS and len(parts) > 2 and parts[1] != "testing":
            return f"{parts[0]}/{parts[1]}"
        return parts[0]

    def height(self, room: str) -> int | None:
        for hall, kind in HALLS.items():
            if room not in self.floors and room.startswith(f"{hall}/"):
                room = kind
        return self.floors.get(room)

    def sources(self) -> Iterator[Path]:
        for path in sorted((self.root / "src").rglob("*")):
            if path.suffix in (".h", ".cc", ".inc"):
                yield path


def is_test(path: Path) -> bool:
    testing = path.stem.endswith(("_test", "_testing")) or "testing" in path.parts
    return testing or path.parts[0] == "tests"


def judge(tree: Tree, upper: str, lower: str, sideways_ok: bool) -> str | None:
    """What is wrong with room `upper` using room `lower`, if anything."""
    if upper == lower:
        return None
    above, below = tree.height(upper), tree.height(lower)
    if above is None or below is None:
        return f"'{upper if above is None else lower}' is on no floor"
    if below > above:
        return f"'{upper}' reaches up to '{lower}'"
    if below == above and not sideways_ok:
        return f"'{upper}' reaches sideways to '{lower}'"
    return None


def include_faults(tree: Tree) -> list[str]:
    faults = []
    src = tree.root / "src"
    for path in tree.sources():
        file = path.relative_to(src)
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            included = Path(name)
            if is_test(file) and included.parts[:2] == ("..", "tests"):
                continue  # shared by the tests of several rooms
            if not (src / included).is_file():
                faults.append(f'src/{file}: "{name}" is not a file below src/')
                continue
            fault = judge(
                tree, tree.room_of(file), tree.room_of(included), is_test(file)
            )
            if fault is None and is_test(included) and not is_test(file):
                fault = "includes what is for tests only"
            if fault:
                faults.append(f'src/{file}: includes "{name}": {fault}')
    return faults


def circles(tree: Tree) -> list[str]:
    """Files that include each other, a header and its .cc taken as one."""
    src = tree.root / "src"
    uses: dict[str, set[str]] = {}
    for path in tree.sources():
        file = path.relative_to(src)
        if not is_test(file):
            found = INCLUDE.findall(path.read_text(encoding="utf-8"))
            uses.setdefault(str(file.with_suffix("")), set()).update(
                str(Path(name).with_suffix("")) for name in found
            )
    return round_trips(uses)


def python_circles(package: Path) -> list[str]:
    """Modules of a package that import each other, be it for annotations alone."""
    uses = {}
    for path in package.rglob("*.py"):
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        found = PYTHON_IMPORT.findall(path.read_text(encoding="utf-8"))
        uses[module.removesuffix(".__init__")] = {a or b for a, b in found}
    return round_trips(uses)


def round_trips(uses: dict[str, set[str]]) -> list[str]:
    """Ways through `uses` that come back to where they began."""
    faults: list[str] = []
    done: set[str] = set()

    def visit(file: str, way: list[str]) -> None:
        if file in way:
            faults.append(" -> ".join([*way[way.index(file) :], file]))
            return
        if file in done:
            return
        for used in sorted(uses.get(file, set()) - {file}):
            visit(used, [*way, file])
        done.add(file)

    for name in sorted(uses):
        visit(name, [])
    return faults


def room_calls(text: str) -> Iterator[dict[str, list[str]]]:
    """The arguments of every bakeoff_room(...), by keyword."""
    for call in ROOM_CALL.findall(re.sub(r"#.*", "", text)):
        arguments: dict[str, list[str]] = {}
        keyword = ""
        for word in call.split():
            if word in KEYWORDS:
                keyword = word
                arguments[keyword] = []
            elif keyword:
                arguments[keyword].append(word)
        yield arguments


def room_of_target(target: str) -> str:
    return re.sub("^(emit|study)_", r"\1/", target.removeprefix("bakeoff_"))


def undeclared(tree: Tree) -> list[str]:
    """Rooms whose headers are included but that are no declared dependency."""
    src = tree.root / "src"
    declared: dict[str, set[str]] = {}
    for path in src.rglob("CMakeLists.txt"):
        for call in room_calls(path.read_text(encoding="utf-8")):
            room = tree.room_of(path.relative_to(src).parent / "x.cc")
            targets = call.get("DEPS", [])
            declared[room] = {room_of_target(target) for target in targets}
            if "${emitters}" in targets:  # src/emit/CMakeLists.txt: every one
                declared[room] |= {
                    f"emit/{f.parent.name}" for f in src.glob("emit/*/*.h")
                }
    faults = set()
    for path in tree.sources():
        file = path.relative_to(src)
        room = tree.room_of(file)
        if is_test(file) or room not in declared:
            continue
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            lower = tree.room_of(Path(name))
            if lower not in declared[room] | {room}:
                faults.add(f"src/{room}: includes {lower}, which is not in its DEPS")
    return sorted(faults)


def target_faults(tree: Tree) -> list[str]:
    faults = []
    src = tree.root / "src"
    for path in sorted(src.rglob("CMakeLists.txt")):
        folder = path.relative_to(src)
        room = tree.room_of(folder.parent / "x.cc")
        for call in room_calls(path.read_text(encoding="utf-8")):
            name = call["NAME"][0]
            if name != room.replace("/", "_"):
                faults.append(f"src/{folder}: room '{room}' is called '{name}'")
            for keyword in ("DEPS", "TEST_DEPS"):
                for target in call.get(keyword, []):
                    if not target.startswith("bakeoff_"):
                        continue
                    lower = room_of_target(target)
                    fault = judge(tree, room, lower, keyword == "TEST_DEPS")
                    if fault:
                        faults.append(f"src/{folder}: {keyword} {target}: {fault}")
    return faults


class TheRepository(unittest.TestCase):
    def setUp(self) -> None:
        document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
        self.tree = Tree(ROOT, read_floors(document))

    def test_includes_go_down(self) -> None:
        self.assertEqual(include_faults(self.tree), [])

    def test_targets_depend_downwards(self) -> None:
        self.assertEqual(target_faults(self.tree), [])

    def test_every_room_that_is_used_is_declared(self) -> None:
        self.assertEqual(undeclared(self.tree), [])

    def test_no_files_include_each_other(self) -> None:
        self.assertEqual(circles(self.tree), [])

    def test_no_modules_of_the_runner_import_each_other(self) -> None:
        self.assertEqual(python_circles(ROOT / "runners" / "bakeoff_runner"), [])

    def test_a_circle_of_modules_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "shop"
            package.mkdir()
            (package / "a.py").write_text("from shop.b import B\n")
            (package / "b.py").write_text("if True:\n    import shop.a\n")
            self.assertEqual(python_circles(package), ["shop.a -> shop.b -> shop.a"])

    def test_it_is_really_read(self) -> None:
        self.assertGreater(len(list(self.tree.sources())), 50)
        self.assertGreater(len(self.tree.floors), 10)

    def test_every_room_has_a_floor(self) -> None:
        for folder in (ROOT / "src").iterdir():
            if folder.is_dir():
                inside = [Path(floor).parts[0] for floor in self.tree.floors]
                self.assertIn(folder.name, inside)


class PlantedFaults(unittest.TestCase):
    """The test itself, tried on trees with one fault each."""

    FLOORS = read_floors(
        "```floors\nlab\nemit/all\nemit/<framework>\nzoo emit\nbase\n```"
    )

    def faults(self, files: dict[str, str]) -> list[str]:
        sound = {
            "src/base/files.h": "",
            "src/base/files.cc": '#include "base/files.h"\n#include <vector>\n',
            "src/zoo/zoo.h": '#include "base/files.h"\n',
            "src/emit/emit.h": '#include "base/files.h"\n',
            "src/emit/torch/torch.h": '#include "emit/emit.h"\n',
            "src/emit/all/all.cc": '#include "emit/torch/torch.h"\n',
            "src/lab/race.h": '#include "emit/emit.h"\n',
            "src/lab/CMakeLists.txt": (
                "bakeoff_room(NAME lab SOURCES a.cc DEPS bakeoff_zoo fmt::fmt)"
            ),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**sound, **files}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            tree = Tree(Path(folder), self.FLOORS)
            return include_faults(tree) + target_faults(tree)

    def assert_fault(self, file: str, text: str, expected: str) -> None:
        faults = self.faults({file: text})
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(expected, faults[0])
        self.assertIn(file, faults[0])

    def test_a_sound_tree_passes(self) -> None:
        self.assertEqual(self.faults({}), [])

    def test_an_upward_include_is_caught(self) -> None:
        up = '#pragma once\n\n#include "lab/race.h"\n'
        self.assert_fault("src/base/clock.h", up, "'base' reaches up to 'lab'")
        self.assert_fault("src/zoo/a.cc", '  #  include "lab/race.h"\n', "reaches up")
        self.assert_fault(
            "src/emit/emit.cc", '#include "emit/torch/torch.h"', "'emit' reaches up"
        )
        self.assert_fault("src/zoo/zoo_test.cc", up, "'zoo' reaches up to 'lab'")

    def test_a_sideways_include_is_caught(self) -> None:
        sideways = '#include "zoo/zoo.h"\n'
        self.assert_fault("src/emit/a.cc", sideways, "reaches sideways to 'zoo'")
        torch = '#include "emit/torch/torch.h"\n'
        self.assert_fault("src/emit/jax/a.cc", torch, "sideways to 'emit/torch'")

    def test_a_test_may_go_sideways(self) -> None:
        self.assertEqual(
            self.faults({"src/emit/a_test.cc": '#include "zoo/zoo.h"'}), []
        )

    def test_unknown_files_and_rooms_are_caught(self) -> None:
        self.assert_fault("src/lab/a.cc", '#include "files.h"', "not a file below src/")
        self.assert_fault("src/util/a.h", '#include "base/files.h"', "on no floor")

    def test_code_for_tests_stays_there(self) -> None:
        files = {"src/lab/noise_testing.h": "", "src/lab/race_test.cc": ""}
        use = '#include "lab/noise_testing.h"'
        self.assertEqual(self.faults({**files, "src/lab/b_test.cc": use}), [])
        self.assertIn("for tests only", self.faults({**files, "src/lab/b.cc": use})[0])

    def test_an_upward_target_is_caught(self) -> None:
        file = "src/zoo/CMakeLists.txt"
        self.assert_fault(
            file,
            "bakeoff_room(NAME zoo\n  SOURCES a.cc  # why\n  DEPS bakeoff_base bakeoff_lab)",
            "DEPS bakeoff_lab: 'zoo' reaches up",
        )
        self.assert_fault(
            file, "bakeoff_room(NAME zoo DEPS bakeoff_emit)", "sideways to 'emit'"
        )
        self.assert_fault(
            file, "bakeoff_room(NAME zoo TEST_DEPS bakeoff_emit_all)", "reaches up"
        )
        self.assert_fault(file, "bakeoff_room(NAME oops)", "is called 'oops'")
        self.assertEqual(
            self.faults({file: "bakeoff_room(NAME zoo TEST_DEPS bakeoff_emit)"}), []
        )


if __name__ == "__main__":
    unittest.main()
