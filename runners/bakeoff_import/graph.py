"""The IR that is being built: nodes, parameters, names, and its text.

Rows add nodes in whatever order the origin's program has them. The text must not depend
on that order, as the graphs of both modes, of all batch sizes and of repeated blocks
are compared by it, and blocks are printed as one class only where they are equal. So
nodes are put in an order that follows from what they read, names are given once, and
what several modules of a list share stands in front of all of them. Peepholes keep the
number of nodes near that of the model's own lines: exporters write a reshape for every
view.
"""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from bakeoff_import.problems import ImportProblem
from bakeoff_import.values import Layout, N, Shape, Value

Attr = Union[int, float, bool, str, Sequence[int]]

_BAD = re.compile(r"[^A-Za-z0-9_.]")


def ir_word(text: str) -> str:
    """A name that the IR can hold."""
    return _BAD.sub("_", text) or "_"


def numbered(path: str) -> str:
    """Of "blocks.0.attn" the module in a list that it is a part of: "blocks.0"."""
    words = path.partition(".parametrizations.")[0].split(".")
    last = max((i for i, word in enumerate(words) if word.isdigit()), default=-1)
    return ".".join(words[: last + 1])


class Names:
    """Gives every name once; names that differ by case alone count as equal."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        name, count = wanted, self._next.get(wanted.lower(), 2)
        while name.lower() in self._used:
            name, count = f"{wanted}_{count}", count + 1
        self._used.add(name.lower())
        self._next[wanted.lower()] = count
        return name


@dataclass
class Parameter:
    """A parameter of the IR and what it is in the origin.

    targets: the origin's tensors that it stands for: its value is their sum.
    """

    name: str
    tensor: Any
    frozen: bool
    targets: tuple[str, ...] = ()


# Ops of the IR that pass no gradient.
WITHOUT_GRADIENT = {
    "stop_gradient", "cast", "argmax", "less", "less_equal", "equal", "logical_and",
    "logical_or", "logical_not",
}  # fmt: skip


# Ops of one value, and of numbers.
OF_ELEMENTS = (
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "exp",
    "sigmoid",
    "softplus",
    "square",
)


@dataclass
class Node:
    op: str
    output: str
    inputs: tuple[str, ...]
    params: tuple[tuple[str, str], ...]  # slot, parameter
    attrs: dict[str, Attr]
    shape: Shape
    dtype: str
    where: str  # the user's line
    source: str = ""  # the op of the origin
    path: str = ""  # the module of the origin

    def mask(self, shapes: Mapping[str, Shape]) -> Optional[tuple[float, Shape]]:
        """Rate and shape of the mask that it draws in training."""
        rate = float(self.attrs.get("rate", 0))  # type: ignore[arg-type]
        if self.op == "attention" and rate > 0:
            rows, queries, heads, _ = self.shape
            return rate, (rows, heads, queries, shapes[self.inputs[1]][1])
        return (rate, self.shape) if self.op == "dropout" else None


@dataclass
class Graph:
    """Nodes in order of evaluation. Peepholes: a reshape of a reshape and a
    transposition of a transposition become one, and vanish where nothing is left."""

    nodes: list[Node] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    parameter_names: Names = field(default_factory=Names)
    by_target: dict[tuple[str, ...], str] = field(default_factory=dict)
    where: str = ""  # of the nodes that are added now
    base: str = "h"  # the name of the next one; of others it begins their names
    named: bool = False  # whether a value has this name
    source: str = ""
    path: str = ""  # the module that the nodes are of that are added now
    by_output: dict[str, Node] = field(default_factory=dict)

    @contextlib.contextmanager
    def called(self, base: str) -> Iterator[None]:
        """Values that are added meanwhile have this name."""
        before = self.base, self.named
        self.base, self.named = base, False
        try:
            yield
        finally:
            self.base, self.named = before

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Shape,
        dtype: str = "f32",
        params: Iterable[tuple[str, str]] = (),
        attrs: Optional[Mapping[str, Attr]] = None,
    ) -> str:
        """Adds a node; its value's name."""
        output = self.names.unique(f"{self.base}_{op}" if self.named else self.base)
        self.named = True
        node = Node(
            op=op,
            output=output,
            inputs=tuple(inputs),
            params=tuple(params),
            attrs=dict(attrs or {}),
            shape=tuple(shape),
            dtype=dtype,
            where=self.where,
            source=self.source,
            path=self.path,
        )
        self.nodes.append(node)
        self.by_output[output] = node
        return output

    def below(self, word: str) -> str:
        """A name for a parameter of the present module."""
        path = self.path.partition(".parametrizations.")[0]
        return f"{path}.{word}" if path else word

    def parameter(
        self,
        wanted: str,
        tensor: Any,
        frozen: bool,
        targets: Sequence[str] = (),
    ) -> str:
        """Declares a parameter, once for every target; its name."""
        if targets and tuple(targets) in self.by_target:
            return self.by_target[tuple(targets)]
        if wanted.partition(".")[0].isdigit():  # the model itself is a list
            wanted = "layers." + wanted
        name = self.parameter_names.unique(ir_word(wanted))
        self.parameters[name] = Parameter(name, tensor, frozen, tuple(targets))
        if targets:
            self.by_target[tuple(targets)] = name
        return name

    def reshape(self, name: str, old: Shape, shape: Shape, dtype: str = "f32") -> str:
        shape = tuple(shape)
        if tuple(old) == shape:
            return name
        made = self.by_output.get(name)
        if made is not None and made.op in ("reshape", "flatten"):
            source = self.by_output.get(made.inputs[0])
            before = source.shape if source else self.inputs_shape(made.inputs[0])
            if before is not None:
                return self.reshape(made.inputs[0], before, shape, dtype)
        if len(shape) == 2 and len(old) > 2 and shape[0] == N and old[0] == N:
            return self.node("flatten", [name], shape, dtype)
        return self.node("reshape", [name], shape, dtype, attrs={"shape": shape})

    input_shapes: dict[str, Shape] = field(default_factory=dict)

    def inputs_shape(self, name: str) -> Optional[Shape]:
        return self.input_shapes.get(name)

    def transpose(
        self, name: str, old: Shape, perm: Sequence[int], dtype: str = "f32"
    ) -> str:
        perm = list(perm)
        if perm == sorted(perm):
            return name
        made = self.by_output.get(name)
        if made is not None and made.op == "transpose":
            first: Any = made.attrs["perm"]
            source = self.by_output.get(made.inputs[0])
            before = source.shape if source else self.inputs_shape(made.inputs[0])
            if before is not None:
                both = [first[axis] for axis in perm]
                return self.transpose(made.inputs[0], before, both, dtype)
        shape = tuple(old[axis] for axis in perm)
        return self.node("transpose", [name], shape, dtype, attrs={"perm": perm})

    def declare_as_read(self, results: Sequence[str]) -> None:
        """A parameter that ops read as a value alone, never in a slot, is declared in
        the shape that most of them need; reshaping it is no op then."""
        self._reshape_early(results)
        live = self.live(results)
        slots: dict[str, int] = {}
        readers: dict[str, list[Node]] = {}
        for node in live:
            for _, name in node.params:
                slots[name] = slots.get(name, 0) + 1
            for name in set(node.inputs):
                readers.setdefault(name, []).append(node)
        stands_for: dict[str, str] = {}
        for node in live:
            if node.op != "parameter" or slots[node.params[0][1]] > 1:
                continue
            own = readers.get(node.output, [])
            if not own or any(r.op not in ("reshape", "flatten") for r in own):
                continue
            shapes = [r.shape for r in own]
            node.shape = max(shapes, key=shapes.count)
            parameter = self.parameters[node.params[0][1]]
            parameter.tensor = parameter.tensor.reshape(node.shape)
            for reader in own:
                if reader.shape == node.shape:
                    stands_for[reader.output] = node.output
        for node in live:
            node.inputs = tuple(stands_for.get(name, name) for name in node.inputs)

    def _vector(self, node: Optional[Node]) -> Optional[Node]:
        """What a reshape or an op of one value and numbers computes with."""
        if node is None or node.op not in ("reshape", *OF_ELEMENTS):
            return None
        parts = [self.by_output.get(name) for name in node.inputs]
        vectors = [one for one in parts if one is None or one.op != "constant"]
        return vectors[0] if len(vectors) == 1 else None

    def _reshape_early(self, results: Sequence[str]) -> None:
        """Of the parameter in (1 + w), reshaped, w is reshaped in place of the sum."""
        live = self.live(results)
        read = [name for node in live for name in node.inputs] + list(results)
        for node in live:
            root: Optional[Node] = node if node.op == "reshape" else None
            while root is not None and root.op != "parameter":
                root = self._vector(root)
            while root is not None and node.op == "reshape":
                made = self.by_output[node.inputs[0]]
                part = self._vector(made)
                if part is None or read.count(made.output) > 1:
                    break
                if made.op == "reshape":
                    node.inputs = made.inputs
                    continue
                given = made.inputs
                made.inputs = (part.output,)
                node.inputs = tuple(
                    made.output if name == part.output else name for name in given
                )
                made.op, node.op = node.op, made.op
                made.attrs, node.attrs = node.attrs, made.attrs
                made.shape, node = node.shape, made

    def hoist(self) -> None:
        """Numbers, and what follows from parameters alone and several modules of a list
        read, go in front: each module of the list computes the same then. A number for
        each row, the first state of a loop, stands behind what has the rows."""
        fixed: set[str] = set()
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            if all(name in fixed for name in node.inputs) and node.op != "dropout":
                fixed.add(node.output)
            for name in node.inputs:
                readers.setdefault(name, []).append(node)
        front: set[str] = set()
        for node in reversed(self.nodes):
            own = readers.get(node.output, [])
            home = numbered(node.path)
            if node.output in fixed and (
                node.op == "constant"
                or any(r.output in front or numbered(r.path) != home for r in own)
            ):
                front.add(node.output)

        def place(node: Node) -> int:
            return 2 if node.output not in front else node.op != "constant"

        self.nodes.sort(key=place)
        for node in [node for node in self.nodes if self._is_full(node)][::-1]:
            self.nodes.remove(node)
            at = [i for i, n in enumerate(self.nodes) if n.output in node.inputs]
            self.nodes.insert(at[-1] + 1, node)

    def _is_full(self, node: Node) -> bool:
        made = self.by_output.get(node.inputs[0]) if node.op == "expand" else None
        return made is not None and made.op == "constant"

    def repeat_for_rows(self, results: Sequence[str]) -> None:
        """What is expanded gets all the rows, and with it what follows from it."""
        for node in self.live(results):
            rows = node.op == "expand" or any(
                self.by_output[name].shape[:1] == (N,)
                for name in node.inputs
                if name in self.by_output
            )
            if rows and node.shape[:1] == (1,):
                node.shape = (N, *node.shape[1:])
                if node.op in ("reshape", "expand"):
                    node.attrs["shape"] = node.shape

    def freeze_untrained(
        self, results: Sequence[str], besides: Iterable[str]
    ) -> list[str]:
        """Freezes what no gradient of the results reaches; its names. `besides`:
        running statistics, which no gradient moves."""
        wanted, slots, trained = set(results), set(), set()
        for node in reversed(self.live(results)):
            names = [name for _, name in node.params]
            slots.update(names)
            if node.output in wanted and node.op not in WITHOUT_GRADIENT:
                wanted.update(node.inputs)
                trained.update(names)
        found = []
        for name in sorted(slots - trained - set(besides)):
            if not self.parameters[name].frozen:
                self.parameters[name].frozen = True
                found.append(name)
        return found

    def join_outputs(self, result: str, outputs: Mapping[str, Shape]) -> None:
        """What puts flattened outputs of these names and sizes side by side becomes one
        op, `join`, of them as they are: scripts that predict give them one by one."""
        last = self.by_output[result]
        if last.op != "concat" or len(last.inputs) != len(outputs):
            return
        inputs = list(last.inputs)
        for i, (name, size) in enumerate(zip(inputs, outputs.values())):
            shape, made = (N, *size), self.by_output.get(name)
            if made is not None and size:  # one number a row stays N,1
                inputs[i] = self.reshape(name, made.shape, shape)
        self.nodes.remove(last)
        self.nodes.append(last)  # behind the reshapes
        last.op, last.attrs, last.inputs = "join", {}, tuple(inputs)
        self.name_outputs(inputs, list(outputs))

    def name_outputs(self, values: Sequence[str], names: Sequence[str]) -> None:
        """Calls joined values as the model calls its outputs."""
        for old, wanted in zip(values, names):
            if values.count(old) > 1:
                raise ImportProblem(
                    f"the output '{wanted}' holds the same values as another",
                    "name one of them",
                )
            if not wanted.isidentifier() or old not in self.by_output or old == wanted:
                continue
            name = self.names.unique(wanted)
            made = self.by_output[name] = self.by_output.pop(old)
            made.output = name
            for node in self.nodes:
                node.inputs = tuple(name if one == old else one for one in node.inputs)

    def live(self, results: Sequence[str]) -> list[Node]:
        """The nodes that these values depend on."""
        wanted, kept = set(results), []
        for node in reversed(self.nodes):
            if node.output in wanted:
                wanted.update(node.inputs)
                kept.append(node)
        return kept[::-1]

    def _followed(self, results: Sequence[str]) -> list[Node]:
        """The live nodes, each behind its inputs, in an order that follows from what
        they read and not from when they were added."""
        open_, seen, found = list(results)[::-1], set(), []
        while open_:
            node = self.by_output.get(open_[-1])
            if node is None or node.output in seen:
                open_.pop()
                continue
            missing = [
                name
                for name in node.inputs[::-1]
                if name in self.by_output and name not in seen
            ]
            open_ += missing
            if not missing:
                seen.add(node.output)
                found.append(node)
        return found

    def signature(self, results: Sequence[str]) -> list[tuple[Any, ...]]:
        """What is computed, independent of names and of unused nodes, and the user's
        line: graphs whose rows are equal up to the line compute the same."""
        number: dict[str, Any] = {name: name for name in self.input_shapes}
        rows: list[tuple[Any, ...]] = []
        for node in self._followed(results):
            number[node.output] = len(rows)
            inputs = tuple(number[name] for name in node.inputs)
            params = tuple((slot, self._identity(name)) for slot, name in node.params)
            attrs = tuple(sorted((k, _text(v)) for k, v in node.attrs.items()))
            rows.append((node.op, inputs, params, attrs, node.where))
        rows.append(("output", tuple(number[name] for name in results), (), (), ""))
        return rows

    def _identity(self, name: str) -> Any:
        parameter = self.parameters[name]
        return parameter.targets or tuple(parameter.tensor.flatten().tolist())

    def declaration(self, name: str) -> str:
        parameter = self.parameters[name]
        sizes = ",".join(str(size) for size in parameter.tensor.shape)
        return f"{name}[{sizes}]{' frozen' if parameter.frozen else ''}"

    def line(self, node: Node) -> str:
        """One node as text; without a line end."""
        slots = ", ".join(f"{slot}={self.declaration(p)}" for slot, p in node.params)
        inside = ", ".join(node.inputs) + (f"; {slots}" if slots else "")
        attrs = "".join(f" {name}={_text(value)}" for name, value in node.attrs.items())
        return f"{node.output} = {node.op}({inside.lstrip()}){attrs}"


def _text(value: Attr) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return (
            "inf"
            if value == math.inf
            else "-inf"
            if value == -math.inf
            else repr(value)
        )
    if isinstance(value, (int, str)):
        return str(value)
    return ",".join("N" if size == N else str(size) for size in value)


def shape_text(shape: Shape) -> str:
    return "[" + ",".join("N" if size == N else str(size) for size in shape) + "]"


def value_of(name: str, shape: Shape, dtype: str) -> Value:
    """An input of the workload: N is axis 0."""
    return Value(name, Layout(tuple(1 if s == N else s for s in shape), 0), dtype)


def text_of(name: str, inputs: Mapping[str, str], lines: Sequence[str]) -> str:
    """A workload's text; `inputs`: name to type."""
    head = ", ".join(f"{key}: {kind}" for key, kind in inputs.items())
    body = "".join(f"  {line}\n" for line in lines)
    return f"workload {name}({head}) {{\n{body}}}\n"
