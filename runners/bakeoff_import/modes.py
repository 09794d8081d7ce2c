"""Whether a model computes the same in training as in inference."""

from __future__ import annotations

from typing import Any

from bakeoff_import.graph import Graph
from bakeoff_import.problems import ImportProblem


def same_in_both_modes(
    train: Graph, output: str, inference: Graph, other: str, remedy: str
) -> None:
    """Raises ImportProblem with the user's line of the first op that differs."""
    ours, theirs = train.signature([output]), inference.signature([other])
    # Both end in their output, so that a longer one differs there at the latest.
    differ = (pair for pair in zip(ours, theirs) if pair[0][:4] != pair[1][:4])
    found = next(differ, None)
    if found is None:
        return
    one, two = found

    def said(rowed: tuple[Any, ...]) -> str:
        return f"{rowed[0]} ({rowed[4]})" if rowed[4] else str(rowed[0])

    raise ImportProblem(
        "the model computes something else in training than in inference: "
        f"{said(one)} against {said(two)}",
        remedy,
        one[4] or two[4],
    )
