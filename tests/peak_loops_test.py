"""The loops that measure peaks and bandwidths do all of their work, by every compiler.

python3 peak_loops_test.py BUILD: the folder of a build, which has compiled src/roofline

What a compiler can prove to be equal or unused it computes once or not at all, and the
figure is then several times too high, as those of int8 and bf16 were. So the machine code
is read: a turn of loop<..., N> must have N multiplications, a turn of a memory loop must
read and write each of its arrays. The library of the build is read, and the same sources
compiled again by each compiler that is installed, at two levels of optimisation.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path()
COMPILERS = ("g++", "g++-12", "g++-13", "clang++", "clang++-14", "clang++-16")
LEVELS = ("-O2", "-O3")
CHAINS = re.compile(r"\b((?:fma|dot)_loop<.*, (\d+)>)\(long\)>:$")
STREAM = re.compile(r"Streams<.*::(\w+)>::(read|write|copy|triad<\w+>)\(")
LINE = re.compile(r"^ *([0-9a-f]+):\t(?:\{vex\} )?(\w+) *([^#<]*)")
MULTIPLIES = re.compile(r"v?(fn?m(add|sub)\w+|mul[sp][sd]|pdpbusd|dpbf16ps)")
# Of one line of 64 bytes of each array: reads and writes.
TRAFFIC = {"read": (1, 0), "write": (0, 1), "copy": (1, 1), "triad": (2, 1)}
Instruction = tuple[int, str, str]  # address, word, operands


def turns(code: list[Instruction]) -> list[list[Instruction]]:
    """The loops that have no loop within: from where a jump leads to the jump."""
    spans = []
    for at, word, operands in code:
        target = operands.split(" ")[0]
        if word.startswith("j") and re.fullmatch("[0-9a-f]+", target):
            if int(target, 16) < at:
                spans.append((int(target, 16), at))
    inner = [
        (a, b)
        for a, b in spans
        if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)
    ]
    return [[line for line in code if a <= line[0] < b] for a, b in inner]


def multiplications(turn: list[Instruction]) -> int:
    return sum(bool(MULTIPLIES.fullmatch(word)) for _, word, _ in turn)


def traffic(turn: list[Instruction]) -> tuple[int, int]:
    """How many instructions read memory, how many write it."""
    reads = writes = 0
    for _, word, operands in turn:
        if "(" not in operands or word == "lea" or "nop" in f"{word} {operands}":
            continue
        if operands.strip().endswith(")"):
            writes += 1
        else:
            reads += 1
    return reads, writes


def functions(disassembly: str) -> dict[str, list[Instruction]]:
    found = {}
    for block in disassembly.split("\n\n"):
        head, *lines = block.strip().splitlines() or [""]
        if head.endswith(">:"):
            matches = [match for line in lines if (match := LINE.match(line))]
            found[head] = [(int(m[1], 16), m[2], m[3]) for m in matches]
    return found


def kernels() -> list[dict[str, str]]:
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    return [c for c in commands if "/src/roofline/kernels_" in c["file"]]


def compiled(entry: dict[str, str], compiler: str, level: str, folder: str) -> Path:
    """The object of a source by another compiler, which knows not all options of ours."""
    words = shlex.split(entry["command"])
    known = re.compile(r"-(m|I|std=|D|ffp|fno-tree-vec).*")
    out = Path(folder) / "kernels.o"
    own = [word for word in words[1:] if known.fullmatch(word)]
    command = [compiler, *own, level, "-w", "-c", entry["file"], "-o", str(out)]
    subprocess.run(command, check=True, cwd=entry["directory"])
    return out


class PeakLoops(unittest.TestCase):
    def check(self, file: Path) -> int:
        """How many loops were seen in an object or an archive."""
        command = ["objdump", "-d", "-C", "--no-show-raw-insn", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seen = 0
        for head, code in functions(done.stdout).items():
            if chains := CHAINS.search(head):
                most = max(map(multiplications, turns(code)), default=0)
                self.assertEqual(most, int(chains[2]), f"{file}: {chains[1]}")
                seen += 1
            elif stream := STREAM.search(head):
                self.check_stream(head, stream[2].split("<")[0], code)
                seen += 1
            elif "dependent_additions" in head:
                added = [
                    sum(word in ("add", "inc", "lea") for _, word, _ in turn)
                    for turn in turns(code)
                ]
                self.assertGreaterEqual(max(added, default=0), 64, head)
                seen += 1
        return seen

    def check_stream(self, head: str, kind: str, code: list[Instruction]) -> None:
        """All inner loops: a compiler may have another one for the last few lines."""
        reads, writes = TRAFFIC[kind]
        loops = [count for turn in turns(code) if (count := traffic(turn)) != (0, 0)]
        self.assertTrue(loops, f"{head} has no loop that touches memory")
        for seen in loops:
            lines = max(seen) // max(reads, writes)
            self.assertEqual(seen, (reads * lines, writes * lines), head)

    def test_the_library(self) -> None:
        archive = next(BUILD.glob("**/libbakeoff_roofline.a"))
        # Peaks of scalar, AVX2, AVX-512, VNNI, bf16; memory of three sets; the clock.
        self.assertGreaterEqual(self.check(archive), 25)

    def test_other_compilers(self) -> None:
        there = {os.path.realpath(p) for name in COMPILERS if (p := shutil.which(name))}
        for compiler in sorted(there):
            for level in LEVELS:
                with tempfile.TemporaryDirectory() as folder:
                    seen = [
                        self.check(compiled(entry, compiler, level, folder))
                        for entry in kernels()
                    ]
                self.assertGreaterEqual(sum(seen), 20, f"{compiler} {level}")


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    unittest.main()
