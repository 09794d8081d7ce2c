"""The table of docs/import.md: every op of ATen that can be imported."""

from __future__ import annotations

import bakeoff_import.layers  # noqa: F401
from bakeoff_import.rows import ROWS


def table() -> str:
    """Markdown: ops that become the same in one line, in the order of the table."""
    lines: dict[str, list[str]] = {}
    for name, row in ROWS.items():
        meaning = (row.__doc__ or "").strip().splitlines()[0]
        lines.setdefault(meaning, []).append(f"`{name}`")
    rows = "".join(
        f"| {', '.join(names)} | {what} |\n" for what, names in lines.items()
    )
    return f"| ATen | becomes |\n|---|---|\n{rows}"
