"""Emitted scripts pass ruff's linter and formatter, with nothing configured away.

The goldens, and of recipes those with the longest names and the most parameters. Run by
ctest as ``lint_emitted``. $BAKEOFF_TOOLS is a virtual environment with ruff in
it (`make test` makes one): without the variable the test is skipped, with it a missing
ruff is a failure. Exit codes: 0 clean, 1 not, 77 skipped.

    BAKEOFF_TOOLS=~/tools python3 tests/lint_emitted/lint_emitted.py build/dev/bakeoff
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SKIPPED = 77
RECIPES = ("sam_tiny", "unet_tiny", "inception_v3_tiny", "bert_tiny")
FRAMEWORKS = "torch,jax,tensorflow,keras,keras2"
# Ruff's own defaults, import order, modern syntax, likely bugs; default line length.
CHECKS = (
    ["check", "--isolated", "--no-cache", "--extend-select", "I,UP,B"],
    ["format", "--isolated", "--no-cache", "--diff"],
)


def emit(program: str, folder: Path) -> None:
    for recipe in RECIPES:
        out = ["--out", str(folder / recipe), "--frameworks", FRAMEWORKS]
        subprocess.run([program, "emit", recipe, *out], check=True, capture_output=True)


def main(program: str) -> int:
    tools = os.environ.get("BAKEOFF_TOOLS")
    if not tools:
        print("skipped: BAKEOFF_TOOLS is not set")
        return SKIPPED
    ruff = Path(tools) / "bin" / "ruff"
    if not ruff.is_file():
        print(f"BAKEOFF_TOOLS is set, but there is no {ruff}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        emit(program, Path(folder))
        scripts = [*sorted(GOLDEN.rglob("*.py")), *sorted(Path(folder).rglob("*.py"))]
        print(f"{len(scripts)} scripts")
        # Elsewhere than in the repository, where `onnx` would be a package of its own.
        here = Path(__file__).parent
        codes = [
            subprocess.run([ruff, *check, *scripts], cwd=here).returncode
            for check in CHECKS
        ]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
