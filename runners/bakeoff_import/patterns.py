"""What people spell with several ops and the IR has as one.

A hand-written RMS norm or a packed projection computes the same as the op, but
frameworks are fast at the op: a port that keeps the spelling would race the spelling. A
pattern is replaced only if every value between its ends has no other reader and shapes
leave no other reading; then the result is equal for all numbers, not only for those of
a proof. Patterns run on the finished graph of an exported module, behind all rows, so
that no row has to look ahead.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from bakeoff_import.graph import Graph, Node
from bakeoff_import.values import Shape


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
        if not slot and (reader := uses.only(last)):  # a scale of (1 + w) comes first
            graph.nodes.remove(last)
            graph.nodes.insert(graph.nodes.index(reader), last)


# Ops that compute the same in any order of axes; `axis` is told anew.
_ANY_ORDER = {
    "add", "sub", "mul", "div", "neg", "maximum", "minimum", "slice", "concat",
}  # fmt: skip


def _turns_back(node: Node, perm: Sequence[int]) -> bool:
    first: Any = node.attrs.get("perm", ())
    return node.op == "transpose" and [first[axis] for axis in perm] == sorted(perm)


def _ends(uses: _Uses, name: str, perm: Sequence[int]) -> list[Node]:
    """The transpositions of a value by `perm`."""
    readers = uses.readers.get(name, ())
    return [n for n in readers if n.op == "transpose" and n.attrs["perm"] == perm]


def _is_number(shape: Shape) -> bool:
    return shape in ((), (1,))


def _without_rows(shape: Shape, perm: Sequence[int]) -> bool:
    """Whether it has no rows, and moves by `perm` no axis but of size 1."""
    moved = [axis for axis in perm if axis < len(shape) and shape[axis] != 1]
    return shape[:1] == (1,) and len(shape) == len(perm) and moved == sorted(moved)


def _between(uses: _Uses, end: Node) -> dict[str, Node]:
    """The nodes between transpositions and those, as `end`, that turn them back; none
    where another op reads or gives one of these values."""
    perm: Any = end.attrs["perm"]
    found: dict[str, Node] = {}
    left, turned = [end.inputs[0]], False
    while left:
        name = left.pop()
        node = uses.graph.by_output.get(name)
        if node is None:
            return {}
        if name in found or _is_number(node.shape) or _without_rows(node.shape, perm):
            continue
        if _turns_back(node, perm):
            turned = True
            continue
        ends = _ends(uses, name, perm)
        if (
            node.op not in _ANY_ORDER
            or len(node.shape) != len(perm)
            or not uses.kept.isdisjoint([name, *(n.output for n in ends)])
        ):
            return {}
        found[name] = node
        left += node.inputs
        left += [n.output for n in uses.readers[name] if n not in ends]
    return found if turned else {}


def undone_transpositions(graph: Graph, results: Sequence[str]) -> None:
    """What is transposed, computed element by element and transposed back is computed
    as it was (rotary embedding of heads)."""
    ends = [node for node in graph.live(results) if node.op == "transpose"]
    for end in ends:
        uses = _Uses(graph, results)
        perm: list[int] = list(end.attrs["perm"])  # type: ignore[arg-type]
        between = _between(uses, end) if end.output in uses.readers else {}
        for node in between.values():
            for other in _ends(uses, node.output, perm):
                for reader in uses.readers.get(other.output, ()):
                    reader.inputs = tuple(
                        node.output if name == other.output else name
                        for name in reader.inputs
                    )
            node.inputs = tuple(_before(graph, name, perm) for name in node.inputs)
            node.shape = tuple(node.shape[axis] for axis in perm)
            if "axis" in node.attrs:
                node.attrs["axis"] = perm.index(int(node.attrs["axis"]))  # type: ignore[arg-type]


def undone_selections(graph: Graph, results: Sequence[str]) -> None:
    """x.permute(2, 0, 3, 1, 4)[i], turned back for an attention, is a place of x."""
    uses = _Uses(graph, results)
    for end in uses.nodes:
        if end.op != "transpose" or end.output in uses.kept:
            continue
        picked = uses.made(end.inputs[0], "reshape")
        cut = uses.made(picked.inputs[0], "slice") if picked else None
        turn = uses.made(cut.inputs[0], "transpose") if cut else None
        if picked is None or cut is None or turn is None:
            continue
        axis = int(cut.attrs["axis"])  # type: ignore[arg-type]
        order: Any = turn.attrs["perm"]
        rest = list(order)
        place = rest.pop(axis)
        one = cut.shape[axis] == 1
        if not one or picked.shape != (*cut.shape[:axis], *cut.shape[axis + 1 :]):
            continue
        perm: Any = end.attrs["perm"]
        alone = uses.only(picked) and uses.only(cut) and place > 0
        if not alone or [rest[at] for at in perm] != sorted(rest):
            continue
        cut.inputs = turn.inputs
        cut.attrs["axis"] = place
        cut.shape = (*end.shape[:place], 1, *end.shape[place:])
        picked.shape = end.shape
        picked.attrs["shape"] = end.shape
        for reader in uses.readers[end.output]:
            reader.inputs = tuple(
                picked.output if name == end.output else name for name in reader.inputs
            )


def _packed(uses: _Uses, part: Node) -> Optional[tuple[str, int]]:
    """The projection that a slice takes one of n parts of, and a part's width.

    nn.MultiheadAttention splits the last axis into n and d and moves n to the front.
    """
    stacked = uses.made(part.inputs[0], "reshape")
    turned = uses.made(stacked.inputs[0], "transpose") if stacked else None
    split = uses.made(turned.inputs[0], "reshape") if turned else None
    if stacked is None or turned is None or split is None or len(split.shape) != 5:
        return None
    rows, one, places, count, width = split.shape
    whole = uses.graph.by_output.get(split.inputs[0])
    fits = (
        whole is not None
        and one == 1
        and tuple(turned.attrs["perm"]) == (0, 3, 2, 1, 4)  # type: ignore[arg-type]
        and whole.shape == (rows, places, count * width)
        and stacked.shape == (rows, count, places, width)
    )
    return (split.inputs[0], width) if fits else None


def packed_projections(graph: Graph, results: Sequence[str]) -> None:
    """Queries, keys and values that one product computes are slices of it."""
    uses = _Uses(graph, results)
    for part in uses.nodes:
        if part.op != "slice" or part.attrs["axis"] != 1 or part.output in uses.kept:
            continue
        readers = uses.readers[part.output]
        at, end = int(part.attrs["begin"]), int(part.attrs["end"])  # type: ignore[arg-type]
        if end != at + 1 or any(reader.op != "reshape" for reader in readers):
            continue
        if found := _packed(uses, part):
            whole, width = found
            part.inputs = (whole,)
            part.shape = (part.shape[0], part.shape[2], width)
            part.attrs.update(axis=2, begin=at * width, end=end * width)


def _before(graph: Graph, name: str, perm: Sequence[int]) -> str:
    """What an operand is where its reader is transposed no more."""
    node = graph.by_output[name]
    if _turns_back(node, perm):
        return node.inputs[0]
    shape = tuple(node.shape[axis] for axis in perm if axis < len(node.shape))
    if not _without_rows(node.shape, perm) or shape == node.shape:
        return name
    for other in graph.nodes:  # once for all layers, so that these stay alike
        if (other.op, other.inputs, other.shape) == ("reshape", (name,), shape):
            return other.output
    with graph.called(name):
        made = graph.reshape(name, node.shape, shape, node.dtype)
    if graph.nodes[-1].output == made:
        new = graph.nodes.pop()
        new.where, new.source, new.path = node.where, node.source, node.path
        graph.nodes.insert(graph.nodes.index(node) + 1, new)
    return made
