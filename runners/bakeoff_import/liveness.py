"""Which nodes of an exported graph its result depends on: the others are not mapped.

Why not a plain walk back from the result: an exported graph changes tensors in place. A
read of x behind x.add_(y) depends on the addition, which is no input of the reader. So
what changes a tensor is needed as soon as anything that shares its memory is.
"""

from __future__ import annotations

from typing import Any

import torch


def _schema(node: Any) -> Any:
    return getattr(node.target, "_schema", None) if node.op == "call_function" else None


def needed(graph: Any, statistics: set[str]) -> set[Any]:
    """Nodes that the last result of `graph` depends on; `statistics`: ops that write to
    buffers as a part of what they are."""
    root: dict[Any, Any] = {}
    shared: dict[Any, list[Any]] = {}
    changes: list[tuple[Any, Any]] = []  # a node and the memory that it writes to
    for node in graph.nodes:
        schema = _schema(node)
        first = node.args[0] if node.args else None
        if schema is None or not isinstance(first, torch.fx.Node):
            continue
        writes = schema.is_mutable and schema.name.replace("::", ".") not in statistics
        views = bool(schema.returns) and schema.returns[0].alias_info is not None
        if writes or views:
            root[node] = root.get(first, first)
            shared.setdefault(root[node], [root[node]]).append(node)
        if writes:
            changes.append((node, root[node]))
    output = next(node for node in graph.nodes if node.op == "output")
    found: set[Any] = set()

    def mark(node: Any) -> None:
        open_ = [node]
        while open_:
            one = open_.pop()
            if one not in found:
                found.add(one)
                open_ += one.all_input_nodes

    last = output.args[0][-1]
    if isinstance(last, torch.fx.Node):
        mark(last)
    count = -1
    while count != len(found):
        count = len(found)
        for node, memory in changes:
            if node not in found and any(one in found for one in shared[memory]):
                mark(node)
    return found
