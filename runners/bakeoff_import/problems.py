"""What stands in the way of an import, in words for the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

_OURS = str(Path(__file__).parent)  # as tracebacks have it, links not followed


def is_users(file: str, folder: str) -> bool:
    """Whether a source file is the user's own: below his folder, and no package."""
    inside = file.startswith(folder) and "-packages" not in file
    return inside and not file.startswith(_OURS)


def first_line(error: BaseException) -> str:
    """What an exception says, in one line; Keras says it behind where it was raised."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [t for t in lines if not t.startswith("Exception encountered")] or lines
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class ImportProblem(Exception):
    """The import is impossible; the remedy says what to do instead."""

    def __init__(self, message: str, remedy: str = "", where: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy
        self.where = where  # "model.py:12"


class Unsupported(Exception):
    """One op that has no counterpart in the IR; the others are still looked at."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


@dataclass(frozen=True)
class Refusal:
    """An op that cannot be imported, and the user's line that calls it."""

    op: str
    where: str
    why: str
    remedy: str

    def plain(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "where": self.where,
            "why": self.why,
            "remedy": self.remedy,
        }


class Refused(Exception):
    """Ops without a counterpart."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{len(refusals)} ops")
        self.refusals = list(refusals)
