"""The loops that measure peaks compute every chain: python3 peak_loops_test.py ARCHIVE

ARCHIVE: the static library of src/roofline. Chains that the compiler can prove equal are
computed once for all, and the peak is then several times too high, as int8 and bf16
were. So the machine code is read: a turn of loop<..., N> must have N multiplications.
"""

from __future__ import annotations

import re
import subprocess
import sys
import unittest

ARCHIVE = ""
LOOP = re.compile(r"^[0-9a-f]+ <.*\b((?:fma|dot)_loop<.*, (\d+)>)\(long\)>:$")
LINE = re.compile(r"^ *([0-9a-f]+):\t(?:\{vex\} )?(\w+) *([0-9a-f]*)")
MULTIPLIES = re.compile(r"v?(fn?m(add|sub)\w+|mul[sp][sd]|pdpbusd|dpbf16ps)")


def multiplications(code: list[tuple[int, str, str]]) -> int:
    """Of the longest stretch between a jump back and where it leads."""
    most = 0
    for at, word, operand in code:
        if word.startswith("j") and operand and int(operand, 16) < at:
            within = [w for a, w, _ in code if int(operand, 16) <= a < at]
            most = max(most, sum(bool(MULTIPLIES.fullmatch(w)) for w in within))
    return most


def loops(disassembly: str) -> dict[str, tuple[int, int]]:
    """By the name of a loop: its chains, and the multiplications of a turn."""
    found: dict[str, tuple[int, int]] = {}
    for block in disassembly.split("\n\n"):
        head, *lines = block.strip().splitlines() or [""]
        if start := LOOP.match(head):
            matches = [match for line in lines if (match := LINE.match(line))]
            code = [(int(m[1], 16), m[2], m[3]) for m in matches]
            found[start[1]] = (int(start[2]), multiplications(code))
    return found


class PeakLoops(unittest.TestCase):
    def test_every_chain_is_computed(self) -> None:
        command = ["objdump", "-d", "-C", "--no-show-raw-insn", ARCHIVE]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = loops(done.stdout)
        self.assertGreaterEqual(len(found), 9, "scalar, AVX2, AVX-512, VNNI, bf16")
        for name, (chains, seen) in found.items():
            with self.subTest(name):
                self.assertEqual(seen, chains)


if __name__ == "__main__":
    ARCHIVE = sys.argv.pop(1)
    unittest.main()
