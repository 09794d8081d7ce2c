"""What people spell with several ops and the IR has as one."""

from __future__ import annotations

from typing import Optional, Sequence

from bakeoff_import.graph import Graph, Node


class _Uses:
    """The nodes that results depend on, and who reads each of their values."""

    def __init__(self, graph: Graph, results: Sequence[str]) -> None:
        self.graph = graph
        self.nodes = graph.live(results)
        self.readers: dict[str, list[Node]] = {name: [] for name in results}
        self.slots: dict[str, int] = {}
        for node in self.nodes:
            for name in set(node.inputs):
                self.readers.setdefault(name, []).append(node)
            for _, name in node.params:
                self.slots[name] = self.slots.get(name, 0) + 1
        self.kept = set(results)

    def only(self, node: Node) -> Optional[Node]:
        """What alone reads this value."""
        own = self.readers.get(node.output, [])
        return own[0] if len(own) == 1 and node.output not in self.kept else None

    def made(self, name: str, op: str) -> Optional[Node]:
        """The node behind a value, if it is of this op."""
        node = self.graph.by_output.get(name)
        return node if node is not None and node.op == op else None

    def number(self, name: str) -> Optional[float]:
        node = self.made(name, "constant")
        return None if node is None else float(node.attrs["value"])  # type: ignore[arg-type]

    def other(self, node: Node, name: str) -> Optional[str]:
        """The other of two inputs."""
        if len(node.inputs) != 2 or name not in node.inputs:
            return None
        return node.inputs[1 - node.inputs.index(name)]


def _squared(uses: _Uses, name: str) -> Optional[str]:
    """x, where the value is x * x that nothing else reads."""
    for op in ("square", "mul"):
        node = uses.made(name, op)
        if node is not None and uses.only(node) and len(set(node.inputs)) == 1:
            return node.inputs[0]
    return None


def _size(uses: _Uses, root: Node) -> Optional[tuple[str, float]]:
    """x and eps, where a root is that of mean(x * x) + eps over the last axis."""
    total = uses.made(root.inputs[0], "add")
    if total is None or uses.only(total) is None:
        return None
    for name in total.inputs:
        mean = uses.made(name, "mean")
        eps = uses.number(uses.other(total, name) or "")
        if mean is None or eps is None or eps <= 0 or uses.only(mean) is None:
            continue
        x = _squared(uses, mean.inputs[0])
        last = [len(mean.shape) - 1]
        if x and mean.attrs["keepdims"] and list(mean.attrs["axes"]) == last:  # type: ignore[arg-type]
            return x, eps
    return None


def _weight(uses: _Uses, norm: Node) -> Optional[tuple[Node, str]]:
    """The product of a norm and a trained vector that nothing else reads; its name."""
    product = uses.only(norm)
    if product is None or product.op != "mul" or product.shape != norm.shape:
        return None
    node = uses.graph.by_output.get(uses.other(product, norm.output) or "")
    while node is not None and node.op == "reshape" and uses.only(node):
        node = uses.graph.by_output.get(node.inputs[0])
    if node is None or node.op != "parameter" or uses.only(node) is None:
        return None
    slot, width = node.params[0][1], norm.shape[-1]
    count = uses.graph.parameters[slot].tensor.numel()
    read = uses.graph.by_output[uses.other(product, norm.output) or ""].shape[-1:]
    whole = count == width and read == (width,) and uses.slots[slot] == 1
    return (product, slot) if whole else None


def spelled_norms(graph: Graph, results: Sequence[str]) -> None:
    """x * rsqrt(mean(x * x) + eps), times a weight, becomes `rms_norm`."""
    uses = _Uses(graph, results)
    for root in uses.nodes:
        norm = uses.only(root) if root.op in ("rsqrt", "sqrt") else None
        found = _size(uses, root) if norm is not None else None
        if norm is None or found is None:
            continue
        x, eps = found
        spelled = (x, root.output)
        if root.op == "sqrt" and (norm.op != "div" or norm.inputs != spelled):
            continue
        if root.op == "rsqrt" and (norm.op != "mul" or set(norm.inputs) != {*spelled}):
            continue
        last, slot = _weight(uses, norm) or (norm, "")
        if slot:
            parameter = graph.parameters[slot]
            parameter.tensor = parameter.tensor.reshape(-1)
        last.op, last.inputs = "rms_norm", (x,)
        last.params = (("weight", slot),) if slot else ()
        last.attrs = {"dims": 1, "eps": eps}
