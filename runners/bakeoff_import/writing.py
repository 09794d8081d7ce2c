"""What an export's answer holds, whatever framework the model is of."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

from bakeoff_import.graph import Graph, Node, ir_word, shape_text, text_of
from bakeoff_import.problems import ImportProblem, Refused
from bakeoff_import.values import Shape, Value


@dataclass(frozen=True)
class InputSpec:
    """An input as the user wrote it: its name, if he gave one, and type."""

    name: str
    dtype: str
    shape: tuple[int, ...]  # with a batch size of an example at axis 0
    below: int = 0  # of integers; 0: what the ops that read them allow


def input_specs(fields: Mapping[str, Any]) -> list[InputSpec]:
    """Of an export's request."""
    return [
        InputSpec(one["name"], one["dtype"], tuple(one["shape"]), one.get("below", 0))
        for one in fields["inputs"]
    ]


def type_text(dtype: str, shape: Shape) -> str:
    return dtype + shape_text(shape)


def loss_line(loss: str, output: Value, target: str, name: str) -> tuple[str, str]:
    """The target's type and the line of the loss, "mse" or "mse,reduction=sum"."""
    shape = output.ir
    loss, *attributes = loss.split(",")
    if loss == "softmax_cross_entropy":
        kind = type_text("i32", shape[:-1])
    elif loss == "ctc" and len(shape) > 1:  # labels that fit, whatever they are
        kind = type_text("i32", (shape[0], (shape[1] + 1) // 2))
    else:
        kind = type_text("f32", shape)
    said = " ".join(["reduction=mean", *attributes])
    return kind, f"{name} = {loss}({output.name}, {target}) {said}"


def parameters_text(graph: Graph, nodes: Sequence[Node]) -> Mapping[str, Any]:
    used = {name for node in nodes for _, name in node.params}
    return {name: graph.parameters[name] for name in graph.parameters if name in used}


def workload_answer(
    name: str,
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Mapping[str, tuple[str, Shape]],
    output: Value,
    loss: str,
) -> dict[str, Any]:
    """The workload's text, its target, and the user's line of every value."""
    taken = [*inputs, *(n.output for n in nodes)]
    target, last = free("y", taken), free("loss", taken)
    kind, line = loss_line(loss, output, target, last)
    text = text_of(
        ir_word(name),
        {**{key: type_text(*spec) for key, spec in inputs.items()}, target: kind},
        [*(graph.line(node) for node in nodes), line],
    )
    return {
        "text": text,
        "target": target,
        "output": output.name,
        "lines": [
            {"value": n.output, "op": n.op, "where": n.where, "source": n.source}
            for n in nodes
        ],
    }


def free(wanted: str, taken: Iterable[str]) -> str:
    """This name, or with the first number behind it that no other has."""
    name, count, used = wanted, 2, set(taken)
    while name in used:
        name, count = f"{wanted}{count}", count + 1
    return name


class Answering:
    """Answers the program's requests; what stands in the way is an answer too."""

    def answer(self, op: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return getattr(self, f"_{op}")(fields)  # type: ignore[no-any-return]
        except ImportProblem as problem:
            return {
                "problem": str(problem),
                "remedy": problem.remedy,
                "where": problem.where,
            }
        except Refused as refused:
            return {"refused": [r.plain() for r in refused.refusals]}
        finally:
            # What a training took, twice the model's own size, while the referee works.
            with contextlib.suppress(AttributeError):  # a C library that is not glibc
                ctypes.CDLL(None).malloc_trim(0)
