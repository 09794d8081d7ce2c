"""Whether a model computes the same in training as in inference, or for other sizes."""

from __future__ import annotations

from typing import Any

from bakeoff_import.graph import Graph
from bakeoff_import.problems import ImportProblem

IN_BOTH_MODES = "the model computes something else in training than in inference"


def same_graphs(
    first: tuple[Graph, str], second: tuple[Graph, str], differs: str, remedy: str
) -> None:
    """Of two graphs and their results. Raises ImportProblem with the user's line of the
    first op that differs."""
    ours, theirs = (graph.signature([output]) for graph, output in (first, second))
    # Both end in their output, so that a longer one differs there at the latest.
    differ = (pair for pair in zip(ours, theirs) if pair[0][:4] != pair[1][:4])
    found = next(differ, None)
    if found is None:
        return
    one, two = found

    def said(rowed: tuple[Any, ...]) -> str:
        return f"{rowed[0]} ({rowed[4]})" if rowed[4] else str(rowed[0])

    raise ImportProblem(
        f"{differs}: {said(one)} against {said(two)}", remedy, one[4] or two[4]
    )
