"""`x[:, i] = y` as a new value of x.

torch can make any graph functional, by tracing the whole model anew, which takes as
long as its export. Most assignments need no more than this: copy_ into slices of a
tensor that the model made becomes slice_scatter and select_scatter, and who reads the
tensor afterwards reads the new one. What shares its memory in another way, or is read
again through an older view, stays as it is.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

_SCATTER = {
    torch.ops.aten.select.int: torch.ops.aten.select_scatter.default,
    torch.ops.aten.slice.Tensor: torch.ops.aten.slice_scatter.default,
}


def _owner(node: Any) -> Any:
    """The node that made the memory of a view."""
    while node.op == "call_function" and node.args:
        schema = getattr(node.target, "_schema", None)
        shares = node.target is operator.getitem or (
            schema and schema.returns and schema.returns[0].alias_info is not None
        )
        if not shares or not isinstance(node.args[0], torch.fx.Node):
            break
        node = node.args[0]
    return node


def functional_assignments(module: torch.fx.GraphModule) -> None:
    """Rewrites the graph in place."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.copy_.default:
            _rewrite(module.graph, node)


def _rewrite(graph: torch.fx.Graph, write: Any) -> None:
    order = {node: place for place, node in enumerate(graph.nodes)}
    links, base = [], write.args[0]
    while base.target in _SCATTER:
        links.append(base)
        base = base.args[0]
    if base.op != "call_function" or _owner(base) is not base or write.users:
        return
    for node in graph.nodes:
        if node in (base, write) or node.op != "call_function":
            continue
        if _owner(node) is not base:
            continue
        schema = getattr(node.target, "_schema", None)
        if schema and schema.is_mutable and order[node] < order[write]:
            return
        if order[node] < order[write] and any(
            order[user] > order[write] for user in node.users
        ):
            return
    with graph.inserting_before(write):
        made = [(torch.ops.aten.copy.default, write.args[0], write.args[1:2])]
        new = None
        for target, under, rest in made + [
            (_SCATTER[link.target], link.args[0], link.args[1:]) for link in links
        ]:
            args = (under, *rest) if new is None else (under, new, *rest)
            new = graph.call_function(target, args)
            new.meta = {**write.meta, "val": under.meta["val"]}
    base.replace_all_uses_with(
        new, delete_user_cb=lambda user: order.get(user, -1) > order[write]
    )
    graph.erase_node(write)
