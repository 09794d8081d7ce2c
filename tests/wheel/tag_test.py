"""scripts/wheel_tag.py: what ELF files of a wheel need of the system, and its tag.

Run alone: python3 -m tests.wheel.tag_test build/dev/bakeoff
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tests.cli import support

SCRIPT = support.ROOT / "scripts" / "wheel_tag.py"
NAME = "bakeoff-0.1.0-py3-none-linux_x86_64.whl"
PLACE = "bakeoff-0.1.0"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
METADATA = "Metadata-Version: 2.1\nName: bakeoff\nVersion: 0.1.0\n"


def tools() -> Path:
    """The environment that wheels are built with."""
    made = subprocess.run(
        [support.ROOT / "scripts/tool_environment", "wheel", "scripts/wheel.txt"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(made.stdout.splitlines()[-1]) / "bin" / "python"


def digest(data: bytes) -> str:
    """As a wheel's RECORD has it."""
    code = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + code.decode().rstrip("=")


class Tag(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="bakeoff_tag_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tag(self, *programs: bytes) -> subprocess.CompletedProcess[str]:
        wheel = self.folder / NAME
        files = {"bakeoff/__init__.py": b"", f"{PLACE}.dist-info/WHEEL": WHEEL.encode()}
        files[f"{PLACE}.dist-info/METADATA"] = METADATA.encode()
        for number, data in enumerate(programs):
            files[f"{PLACE}.data/scripts/program{number}"] = data
        record = f"{PLACE}.dist-info/RECORD"
        rows = [f"{name},{digest(data)},{len(data)}\n" for name, data in files.items()]
        files[record] = "".join([*rows, f"{record},,\n"]).encode()
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return subprocess.run(
            [tools(), SCRIPT, wheel, self.folder / "out"],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_a_program_of_the_release_binarys_kind(self) -> None:
        program = support.BAKEOFF.parent / "tests" / "wheel" / "old_glibc_test"
        done = self.tag(program.read_bytes())
        self.assertEqual(done.returncode, 0, done.stderr)
        (made,) = (self.folder / "out").iterdir()
        self.assertEqual(done.stdout.strip(), str(made))
        # readelf says the same of its symbols.
        listed = subprocess.run(
            ["readelf", "-W", "--version-info", program],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        minor = max(int(n) for n in re.findall(r"Name: GLIBC_2\.(\d+)", listed))
        self.assertLessEqual(minor, 34)
        self.assertRegex(made.name, rf"-py3-none-manylinux_2_{minor}_x86_64\.whl$")
        with zipfile.ZipFile(made) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("/WHEEL"))
            text = archive.read(name).decode()
        self.assertIn(f"Tag: py3-none-manylinux_2_{minor}_x86_64\n", text)

    def test_a_program_with_shared_libraries_is_refused(self) -> None:
        good = support.BAKEOFF.parent / "tests" / "wheel" / "old_glibc_test"
        done = self.tag(good.read_bytes(), support.BAKEOFF.read_bytes())
        self.assertEqual(done.returncode, 2)
        self.assertIn("program1 needs the shared library libstdc++.so.6", done.stderr)
        self.assertRegex(done.stderr, r"program1 needs GLIBCXX_3\.4")
        self.assertNotIn("program0", done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_a_newer_glibc_is_refused(self) -> None:
        source = self.folder / "newer.c"
        source.write_text(
            "#include <stdlib.h>\nint main(void) { return !arc4random(); }\n"
        )
        program = self.folder / "newer"
        subprocess.run(["cc", source, "-o", program], check=True)
        done = self.tag(program.read_bytes())
        self.assertEqual(done.returncode, 2)
        self.assertIn("program0 needs glibc 2.36, newer than 2.34", done.stderr)

    def test_a_wheel_without_a_program_is_refused(self) -> None:
        done = self.tag(b"#!/bin/sh\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no program", done.stderr)


if __name__ == "__main__":
    support.main()
