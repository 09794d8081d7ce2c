"""What stands in the way of an import, in words for the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

_OURS = str(Path(__file__).resolve().parent)


def is_users(file: str, folder: str) -> bool:
    """Whether a source file is the user's own: below his folder, and no package."""
    inside = file.startswith(folder) and "-packages" not in file
    return inside and not file.startswith(_OURS)


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
