"""Emitted scripts pass ruff's linter and formatter, with nothing configured away.

Run by ctest as ``lint_emitted``. $BAKEOFF_TOOLS is a virtual environment with ruff in
it (`make test` makes one): without the variable the test is skipped, with it a missing
ruff is a failure. Exit codes: 0 clean, 1 not, 77 skipped.

    BAKEOFF_TOOLS=~/tools python3 tests/lint_emitted/lint_emitted.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SKIPPED = 77
# Ruff's own defaults, import order, modern syntax, likely bugs; default line length.
CHECKS = (
    ["check", "--isolated", "--no-cache", "--extend-select", "I,UP,B"],
    ["format", "--isolated", "--no-cache", "--diff"],
)


def main() -> int:
    tools = os.environ.get("BAKEOFF_TOOLS")
    if not tools:
        print("skipped: BAKEOFF_TOOLS is not set")
        return SKIPPED
    ruff = Path(tools) / "bin" / "ruff"
    if not ruff.is_file():
        print(f"BAKEOFF_TOOLS is set, but there is no {ruff}")
        return 1
    scripts = sorted(GOLDEN.rglob("*.py"))
    if not scripts:
        print(f"no emitted scripts under {GOLDEN}")
        return 1
    print(f"{len(scripts)} scripts")
    # Elsewhere than in the repository, where `onnx` would be a package of its own.
    codes = [
        subprocess.run([ruff, *check, *scripts], cwd=Path(__file__).parent).returncode
        for check in CHECKS
    ]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
