"""Walks an exported program and maps its ops, by the table of rows (rows.py).

Constants. What depends on no input and no trained parameter is computed here, by torch
itself: masks, position ids, relative position tables. torch.export gives sizes as
expressions of the batch size, so one batch size suffices (ROWS_FOLDED; ONNX files,
which have no expressions, need two): `layout_of` reads from the traced tensor which
axis is c N. A constant with N may enter the workload if all its rows are equal
(`one_row`); else it would depend on the number of a row within its batch.

In-place ops. The IR has values only. `x.add_(1)` gives a new value, and from then on
every name of the tensor stands for that (`_alias`). Two names are the same if an
in-place op returned one for the other (`_same`). A view shares memory without being
the same (`_views`, by the tensor that owns it); if a view is read after such a change,
InPlaceOnView is raised, and the caller exports a functional graph instead.

Refusals. An op that cannot be mapped blocks its readers, and the walk goes on, so that
one message lists all that is missing.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

import torch

from bakeoff_import.builder import LARGEST, NOTHING, Builder
from bakeoff_import.graph import ir_word, numbered, value_of
from bakeoff_import.liveness import needed
from bakeoff_import.problems import Refusal, Unsupported, is_users
from bakeoff_import.values import (
    Complex,
    Const,
    Kept,
    Layout,
    N,
    Noise,
    Param,
    Shape,
    Shifted,
    Stacked,
    Uniform,
    Value,
)

ROWS_FOLDED = 7  # the batch size that constants are computed with
LARGEST_INDEX = 2**31 - 1
TRUTH = 2  # integers of a mask are below it
MOST_COMPARED = 1 << 20  # elements of constants that are told apart by their contents
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')

Row = Callable[["Mapper", "Args"], Any]


class InPlaceOnView(Exception):
    """A tensor changes through a view: the graph must be made functional first."""


class Args(dict[str, Any]):
    """Arguments of a call by their names in the op's schema."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def dtype_of(dtype: torch.dtype) -> str:
    if dtype == torch.bool:
        return "bool"
    if dtype.is_complex:
        raise Unsupported("computes with complex numbers")
    return "f32" if dtype.is_floating_point else "i32"


def coefficient(size: Any) -> tuple[int, bool]:
    """A size as (c, False), or as (c, True) where it is c N."""
    if isinstance(size, int):
        return size, False
    expression = size.node.expr
    if expression.is_Integer:
        return int(expression), False
    symbols = list(expression.free_symbols)
    if any(symbol.name.startswith("u") for symbol in symbols):
        raise Unsupported("has a size that depends on the data", "sizes that are given")
    if len(symbols) == 1:
        tried = {expression.subs(symbols[0], n) / n for n in (2, 3, 5, 1 << 20)}
        factor = tried.pop()  # (2 N + 1) // 2 is N too
        if not tried and factor.is_Integer and factor > 0:
            return int(factor), True
    raise Unsupported(
        f"a size is {expression} of the batch size",
        "sizes may be the batch size or a multiple of it, or fixed",
    )


def layout_of(tensor: Any) -> tuple[Shape, Optional[int]]:
    """Sizes for each row, and the axis that holds N, of a traced tensor."""
    sizes, n = [], None
    for axis, size in enumerate(tensor.shape):
        c, batch = coefficient(size)
        if batch and n is not None:
            raise Unsupported(
                "has the batch on two axes", "rows of a batch must not meet"
            )
        n = axis if batch else n
        sizes.append(c)
    return tuple(sizes), n


def user_line(trace: Optional[str], folder: str) -> str:
    """'model.py:12': the innermost frame in the user's own files, else in any file
    that is not torch's."""
    frames = _FRAME.findall(trace or "")
    for wanted in (
        lambda f: is_users(f, folder),
        lambda f: "/torch/" not in f and "bakeoff_import" not in f,
        lambda f: True,
    ):
        for file, line, _ in reversed(frames):
            if wanted(file):  # type: ignore[no-untyped-call]
                return f"{Path(file).name}:{line}"
    return ""


@dataclass(frozen=True)
class Origin:
    """What the exported program's placeholders stand for."""

    parameters: Mapping[str, tuple[str, Any]]  # placeholder -> (key, tensor)
    constants: Mapping[str, tuple[str, Any]]
    inputs: Mapping[str, tuple[str, Shape, str]]  # -> (name, IR shape, dtype)
    folder: str  # of the user's files
    # Integers of inputs are below these numbers, where the user says so.
    below: Mapping[str, int] = field(default_factory=dict)


class Mapper(Builder):
    def __init__(
        self,
        module: Any,
        origin: Origin,
        rows: Mapping[str, Row],
        norm_modes: Optional[Sequence[bool]] = None,
        dropout: bool = True,
        ops: Sequence[str] = (),
    ) -> None:
        """dropout: False leaves it out."""
        super().__init__(ops)
        self.dropout = dropout
        # Of every batch norm, in order: whether it takes the batch's statistics in
        # training mode. Known already where the graph is that of inference.
        self.norm_modes: list[bool] = []
        self.known_modes = norm_modes
        self.merged_biases = False  # of LSTMs
        self.masked = False  # the data say which keys an attention sees
        # Dropouts that stand for masks by hand, which say what is dropped, or kept.
        self.by_hand: set[str] = set()
        self.padding: dict[str, int] = {}  # tables -> the row that is 0 and stays so
        self.named: dict[str, Value] = {}  # values by their names in the exported graph
        self._module = module
        self._origin = origin
        self._rows = rows
        self._env: dict[Any, Any] = {}
        self._root: dict[Any, Any] = {}
        self._views: dict[Any, list[Any]] = {}  # of a root: what shares its memory
        self._same: dict[Any, list[Any]] = {}
        # Of a node within a part, between that of the part and of the next node.
        self._order: dict[Any, float] = {
            node: float(i) for i, node in enumerate(module.graph.nodes)
        }
        self._numbers: dict[tuple[int, int], str] = {}  # tables that count, by range
        self._turned: dict[str, Param] = {}  # values that are a transposed matrix
        self._slots: dict[int, str] = {}  # of constants, by the tensor's identity
        self._kept: list[Any] = []  # those tensors: identities stay unique
        self._folded: dict[Any, Const] = {}  # computed constants, by their contents
        self._real: dict[int, Const] = {}  # constants as floats, by identity
        self._shared: set[int] = set()  # memory of those that stand for several
        self._blocked: set[Any] = set()
        self.node: Any = None
        self.needed = needed(module.graph, _MUTATES_STATISTICS)
        self.masks: set[str] = set()  # inputs that are taken to hold 0 and 1 alone
        self.whole: set[str] = set()  # floats that are places

    @property
    def dead_dropout(self) -> bool:
        """Whether the model drops in a part that the output does not depend on."""
        return any(
            node not in self.needed and _DRAWS.search(self._op_name(node))
            for node in self._module.graph.nodes
            if node.op == "call_function"
        )

    # -- the walk

    def run(self) -> Any:
        """Maps what the last output depends on; that output. Look at `refusals`
        first."""
        last: Any = None
        for node in self._module.graph.nodes:
            self.node = node
            if node.op == "placeholder":
                self._env[node] = self._placeholder(node)
            elif node.op == "get_attr":
                self._env[node] = getattr(self._module, node.target)
            elif node.op == "output":
                last = node.args[0][-1]  # in front are new values of buffers
            elif node.op == "call_function" and node in self.needed:
                self._call(node)
        if self.refusals or last in self._blocked:
            return None
        return self._get(last)

    def _placeholder(self, node: Any) -> Any:
        origin, name = self._origin, node.name
        if name in origin.parameters:
            return Param(*origin.parameters[name])
        if name in origin.constants:
            key, tensor = origin.constants[name]
            return Const(tensor, key=key)
        key, shape, dtype = origin.inputs[name]
        self.graph.input_shapes[key] = shape
        self.graph.names.unique(key)
        if dtype != "bool":
            self.named[name] = value_of(key, shape, dtype)
            return self.named[name]
        with self.graph.called(key):
            number = self._looked_up(value_of(key, shape, "i32"), 0, TRUTH)
            half = self.number(0.5)
            return self.made("less", [half, number], number.layout, "bool")

    def _get(self, arg: Any) -> Any:
        if isinstance(arg, torch.fx.Node):
            return self._env[arg]
        if isinstance(arg, (list, tuple)):
            return [self._get(one) for one in arg]
        return arg

    def _call(self, node: Any) -> None:
        inputs = node.all_input_nodes
        self._set_place(node)
        if any(one in self._blocked for one in inputs):
            self._blocked.add(node)
            name = self._op_name(node)
            known = self._row(name) is not None or name.startswith(
                ("aten.sym", *_CHECKS)
            )
            if not known and name.startswith("aten."):
                self._refuse(node, *nearest(name))
            return
        try:
            result = self._map(node)
        except Unsupported as why:
            self._refuse(node, str(why), why.remedy)
            return
        except InPlaceOnView:
            raise
        except Exception as error:  # a defect of ours: said like a refusal
            lines = f"{type(error).__name__}: {error}".splitlines()
            self._refuse(node, f"the importer fails at it: {lines[0]}", _SPELLED)
            return
        self._env[node] = result
        if isinstance(result, Value):
            self.named[node.name] = result

    def _set_place(self, node: Any) -> None:
        trace = node.meta.get("stack_trace") or self._trace_within(node)
        self.graph.where = user_line(trace, self._origin.folder)
        op = self._op_name(node)
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path, kind = (stack[-1][0], str(stack[-1][1])) if stack else ("", "")
        short = op.removeprefix("aten.").strip("_")
        words = ir_word(path.replace(".", "_"))
        if not path:
            words = short
        elif "torch.nn.modules." not in kind or re.search(
            "Attention|Transformer", kind
        ):
            words = f"{words}_{short}"
        self.graph.base = words if words[0].isalpha() else f"{short}_{words}"
        self.graph.path = re.sub(r"@\d+", "", path)  # of a second call
        self.graph.named = False
        self.graph.source = op

    def _trace_within(self, node: Any) -> Optional[str]:
        """Where the first op of a part that is a graph of its own stands."""
        held = (self._env.get(a) for a in node.args if isinstance(a, torch.fx.Node))
        for part in held:
            for inner in getattr(getattr(part, "graph", None), "nodes", ()):
                if inner.meta.get("stack_trace"):
                    return str(inner.meta["stack_trace"])
        return None

    @classmethod
    def _op_name(cls, node: Any) -> str:
        return cls.op_name(node.target)

    @staticmethod
    def op_name(target: Any) -> str:
        schema = getattr(target, "_schema", None)
        return (
            schema.name.replace("::", ".")
            if schema
            else getattr(target, "__name__", str(target))
        )

    def _refuse(self, node: Any, why: str, remedy: str) -> None:
        self._blocked.add(node)
        refusal = Refusal(self._op_name(node), self.graph.where, why, remedy)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def _map(self, node: Any) -> Any:
        target = node.target
        if target is operator.getitem:
            return self._get(node.args[0])[node.args[1]]
        if not isinstance(target, torch._ops.OpOverload):
            return self._python(node)
        name = self._op_name(node)
        args = self._bind(node)
        if name in ("aten.sym_size", "aten.sym_numel"):
            return node.meta["val"]
        if name.startswith(_CHECKS):
            return None
        mutates = target._schema.is_mutable and name not in _MUTATES_STATISTICS
        read = [a for a in flat(args.values()) if isinstance(a, _TENSORS)]
        computed = name in _RANDOM | _EMPTY or name.endswith(("batch_norm", "dropout"))
        # Joined first states of a loop are what its next step joins, too.
        joins = name in ("aten.cat", "aten.stack") and len(read) > 0
        computed |= joins and all(
            isinstance(a, Const) and a.n is not None and one_number(a) is not None
            for a in read
        )
        if not computed and all(isinstance(a, Const) for a in read):
            made = self._fold(node, read, mutates)
            self._alias(node, target, False, made)  # a value may be written into it
            return made
        sizes = getattr(node.meta.get("val"), "shape", ())
        if any(isinstance(size, int) and size == 0 for size in sizes):
            return self.nothing(node.meta["val"])
        if name in _EMPTY:
            return Noise(Layout(*layout_of(node.meta["val"])), 1.0, 1.0)
        pairs = _is_complex(node.meta.get("val")) or any(map(_is_complex, read))
        written = args.get("input")
        if mutates and isinstance(written, Param):
            raise Unsupported(*changes_parameter(written.key))
        row = self._rows["complex"] if pairs else self._row(name)
        if any(_is_random(one) for one in read):
            row = self._rows["rand"]
        if row is None:
            raise Unsupported(*nearest(name))
        step = 0
        if isinstance(written, Shifted) and name in _VIEWS:
            step, args["self"] = written.step, written.ids
            args["input"] = written.ids
        result = row(self, args)
        if step:
            return Shifted(result, step)
        of = args.get("input")
        if name in _TURNS and isinstance(of, Param) and of.tensor.ndim == 2:
            made = self.graph.by_output.get(result.name)
            if made is not None and made.op == "transpose":
                self._turned[result.name] = of
        self._alias(node, target, mutates, result)
        return result

    def _row(self, name: str) -> Optional[Row]:
        """The table's row for "aten.relu" and "aten.relu_"."""
        short = name.removeprefix("aten.")
        return self._rows.get(short) or self._rows.get(short.rstrip("_"))

    def has_row(self, name: str) -> bool:
        return self._row(name) is not None

    def _python(self, node: Any) -> Any:
        """Arithmetic with sizes; a region of another gradient mode."""
        value = node.meta.get("val")
        if isinstance(
            value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
        ):
            return value
        name = self._op_name(node)
        if name == "wrap_with_autocast" and node.args[2] is False:
            return self._inline(node, self._get(node.args[4]), node.args[5:])
        if name == "wrap_with_set_grad_enabled":
            made = self._inline(node, self._get(node.args[1]), node.args[2:])
            return made if node.args[0] else [self.stopped(one) for one in made]
        if name == "wrap_with_autocast":
            raise Unsupported(
                "a part of forward runs under torch.autocast()",
                "leave it out: the recipe has the precision",
            )
        raise Unsupported(
            f"'{name}' is no tensor op", "spell it with torch's tensor ops"
        )

    def stopped(self, arg: Any) -> Any:
        """The same numbers; no gradient passes."""
        if isinstance(arg, Param):
            arg = self.value(arg)
        real = isinstance(arg, Value) and arg.dtype == "f32"
        return self.unary("stop_gradient", arg) if real else arg

    def _inline(self, call: Any, module: Any, args: Sequence[Any]) -> Any:
        """The nodes of a part of forward that stands in a graph of its own."""
        given, nodes = iter(args), list(module.graph.nodes)
        for i, node in enumerate(nodes):
            self._order[node] = self._order[call] + (i + 1) / (len(nodes) + 1)
        for node in nodes:
            self.node = node
            if node.op == "placeholder":
                arg = next(given)
                self._env[node] = self._get(arg)
                if isinstance(arg, torch.fx.Node):
                    root = self._root[node] = self._root.get(arg, arg)
                    self._views.setdefault(root, [root]).append(node)
            elif node.op == "get_attr":
                self._env[node] = getattr(module, node.target)
            elif node.op == "output":
                if any(one in self._blocked for one in node.all_input_nodes):
                    raise Unsupported("has parts that cannot be imported")
                return self._get(list(node.args[0]))
            else:
                self._call(node)
        return None

    def _bind(self, node: Any) -> Args:
        schema = node.target._schema
        bound = Args()
        for i, argument in enumerate(schema.arguments):
            if i < len(node.args):
                value = node.args[i]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            else:
                value = argument.default_value
            bound[argument.name] = self._get(value)
        if "self" in bound:
            bound["input"] = bound["self"]
        return bound

    # -- constants

    def _fold(self, node: Any, read: Sequence[Any], mutates: bool) -> Any:
        """Computes a node of constants with ROWS_FOLDED rows."""
        if mutates:
            base = self._env[node.args[0]] if node.args else None
            if isinstance(base, Const) and base.key:
                if base.key.endswith("num_batches_tracked"):
                    return base
                raise Unsupported(
                    f"changes the buffer '{base.key}' in the forward pass",
                    "only batch norm's running statistics may change",
                )
            memory = base.tensor.untyped_storage().data_ptr() if base else 0
            if memory in self._shared:
                raise InPlaceOnView  # equal constants are one
            self._folded.clear()  # what it holds may have changed

        def real(arg: Any) -> Any:
            if isinstance(arg, torch.fx.Node):
                return real(self._env[arg])
            if isinstance(arg, Const):  # a view of it may need other strides
                view = self._op_name(node) in ("aten.view", "aten._unsafe_view")
                return arg.tensor.contiguous() if view else arg.tensor
            if isinstance(arg, (torch.SymInt, torch.SymFloat)):
                return _at(arg, ROWS_FOLDED)
            if isinstance(arg, (list, tuple)):
                return [real(one) for one in arg]
            return torch.device("cpu") if isinstance(arg, torch.device) else arg

        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # as it was in the trace
        try:
            with torch.no_grad():
                made = node.target(
                    *real(node.args), **{k: real(v) for k, v in node.kwargs.items()}
                )
        finally:
            torch.set_default_dtype(before)
        metas = node.meta["val"]
        if isinstance(made, torch.Tensor):
            if len(read) == 1 and read[0].key and made is read[0].tensor:
                return read[0]
            return self._computed(made, layout_of(metas)[1], read)
        if isinstance(made, (list, tuple)):
            return [
                self._computed(t, layout_of(meta)[1], read)
                for t, meta in zip(made, metas)
            ]
        return made

    def _computed(self, tensor: Any, n: Optional[int], read: Sequence[Any]) -> Const:
        """What constants give; in one part of the model equal ones are one."""
        sources = {one.key or one.source for one in read} - {""}
        source = sources.pop() if len(sources) == 1 else ""
        if tensor.ndim == 0 or tensor.numel() > MOST_COMPARED:
            return Const(tensor, n, source=source)
        held = tensor.detach().contiguous()
        owner = source or numbered(self.graph.path)
        key = (owner, n, held.dtype, tuple(held.shape), held.numpy().tobytes())
        if key in self._folded:
            self._shared.add(self._folded[key].tensor.untyped_storage().data_ptr())
        return self._folded.setdefault(key, Const(tensor, n, source=source))

    def _constant_name(self, arg: Const) -> str:
        """A parameter's: of the buffer it comes from, else of the present module."""
        return arg.key or arg.source or self.graph.below("constant")

    # -- in-place ops

    def _alias(self, node: Any, target: Any, mutates: bool, result: Any) -> None:
        """Remembers which nodes share memory, and lets all names of a tensor that was
        changed in place stand for its new value."""
        first = node.args[0] if node.args else None
        if not isinstance(first, torch.fx.Node):
            return
        root = self._root.get(first, first)
        if not mutates:
            info = (
                target._schema.returns[0].alias_info if target._schema.returns else None
            )
            if info is not None:
                self._root[node] = root
                self._views.setdefault(root, [root]).append(node)
            return
        group = self._same.setdefault(first, [first])
        now = self._order[node]
        for other in self._views.get(root, [root]):
            if other in group:
                continue
            if other in self._env and any(self._order[u] > now for u in other.users):
                raise InPlaceOnView
        group.append(node)
        self._same[node] = group
        self._root[node] = root
        self._views.setdefault(root, [root]).append(node)
        for other in group:
            self._env[other] = result

    # -- for the rows

    def drops(self, rate: float) -> None:
        """Refuses dropout that inference has too."""
        if self.known_modes is not None and rate > 0:
            raise Unsupported("drops in inference mode too", "training=self.training")

    def out(self) -> tuple[Shape, Optional[int]]:
        """Sizes of what the node gives, or of its first tensor, and where N is."""
        made = self.node.meta["val"]
        return layout_of(made[0] if isinstance(made, (list, tuple)) else made)

    def under(self, arg: Any) -> Any:
        """What is written over, perhaps in parts: of memory without contents zeros."""
        if not isinstance(arg, Noise) or arg.keep < 1:
            return self.value(arg)
        lay = arg.layout
        shape = [
            s * (ROWS_FOLDED if d == lay.n else 1) for d, s in enumerate(lay.shape)
        ]
        return self.value(Const(torch.zeros(shape, dtype=torch.float64), lay.n))

    def value(self, arg: Any) -> Value:
        if isinstance(arg, Kept):
            raise Unsupported(
                f"multiplies by noise whose mean is {arg.noise.keep:g}, not 1",
                "divide the noise by the probability to keep a row",
            )
        if isinstance(arg, (Noise, Uniform)):
            raise Unsupported(
                "draws random numbers",
                "only dropout and stochastic depth may be random",
            )
        if isinstance(arg, Stacked):
            return self.stack([self.value(item) for item in arg.items], 0)
        if isinstance(arg, Param):
            return self._once(("p", arg.key), lambda: self._parameter_value(arg))
        if isinstance(arg, Const):
            return self._constant_value(arg)
        return super().value(arg)

    def _parameter_value(self, arg: Param) -> Value:
        slot = self.slot(arg)
        shape = tuple(arg.tensor.shape)
        layout = Layout(shape)
        with self.graph.called(ir_word(arg.key.replace(".", "_"))):
            name = self.graph.node("parameter", [], shape, params=[("weight", slot)])
            name = self.graph.reshape(name, shape, layout.ir())
        return Value(name, layout)

    def _constant_value(self, arg: Const) -> Value:
        tensor, n = arg.tensor, arg.n
        if tensor.ndim == 0 and tensor.is_floating_point():
            return self.number(float(tensor))
        if n is not None:
            tensor = self.one_row(arg, 1)
        after = 1 if n is None else tensor.shape[n]  # N is in front of what it holds
        layout = Layout(tuple(tensor.shape), n, 1, after)
        return self._stored(tensor, layout, arg)

    def places(self, tensor: Any) -> str:
        """A vector of constant integers."""
        wanted = self.graph.below("places")
        slot = self.graph.parameter(wanted, tensor.to(torch.float64), frozen=True)
        with self.graph.called(ir_word(slot.replace(".", "_"))):
            return self._frozen(slot, tuple(tensor.shape), "i32")

    def taken(self, x: Value, tensor: Any, axis: int) -> Value:
        """Places of an axis by a vector of constant integers: a slice, if they are."""
        steps = tensor.diff()
        if tensor.numel() == 1 or (steps[0] > 0 and bool((steps == steps[0]).all())):
            step = int(steps[0]) if tensor.numel() > 1 else 1
            return self.sliced(x, axis, int(tensor[0]), int(tensor[-1]) + 1, step)
        if not self.known("take"):
            return self._picked(x, tensor, axis)
        layout = x.layout.sized(axis, tensor.numel())
        at, shape = x.layout.ir_axis(axis), layout.ir(x.spread)
        inputs = [x.name, self.places(tensor)]
        name = self.graph.node("take", inputs, shape, x.dtype, attrs={"axis": at})
        return Value(name, layout, x.dtype, x.spread)

    def _picked(self, x: Value, places: Any, axis: int) -> Value:
        """Places of an axis by a product with a matrix of zeros and ones."""
        rank = x.layout.rank
        if rank == 1:
            column = self.reshaped(x, x.layout.reshaped((*x.shape, 1), x.layout.n))
            made = self._picked(column, places, axis)
            return self.reshaped(made, made.layout.dropped([1], False))
        perm = list(range(rank))
        perm[axis], perm[rank - 2] = perm[rank - 2], perm[axis]
        turned = self.permuted(x, perm)
        if turned.layout.n == rank - 1:
            raise Unsupported("takes places beside a batch that is the last axis")
        matrix = torch.zeros(places.numel(), x.shape[axis], dtype=torch.float64)
        matrix[torch.arange(places.numel()), places] = 1
        lead = (1,) * (len(turned.ir) - 2)
        wanted = Layout(tuple(matrix.shape))
        left = self._stored(matrix, wanted, Const(matrix), (*lead, *matrix.shape))
        layout = turned.layout.sized(rank - 2, places.numel())
        inputs = [left.name, turned.name]
        name = self.graph.node("matmul", inputs, layout.ir(turned.spread))
        made = Value(name, layout, x.dtype, turned.spread)
        return self.permuted(made, perm)

    def one_row(self, arg: Const, c: int, before: int = 1) -> Any:
        """The constant with N = 1, at its axis `n` of c N elements."""
        tensor, n = arg.tensor, arg.n
        if n is None:
            return tensor
        c = tensor.shape[n] // ROWS_FOLDED
        split = tensor.reshape(
            *tensor.shape[:n], before, ROWS_FOLDED, c // before, *tensor.shape[n + 1 :]
        )
        rows = split.movedim(n + 1, 0)
        if not bool((rows == rows[0]).all()):
            raise Unsupported("depends on the number of a row within its batch")
        return rows[0].reshape(*tensor.shape[:n], c, *tensor.shape[n + 1 :])

    def _stored(
        self, tensor: Any, layout: Layout, arg: Const, wanted: Shape = ()
    ) -> Value:
        """A frozen parameter of the IR with this content, in the shape `wanted`."""
        kind = dtype_of(tensor.dtype)
        spread = layout.n is not None
        shape = wanted or layout.ir(spread)
        laid = _finite(tensor.detach().reshape(shape))
        number = one_number(arg) if spread and shape == layout.ir(True) else None
        if number is not None and (made := self._rows_of(number, layout)):
            return made

        def make() -> Value:
            if tuple(laid.shape) == tuple(arg.tensor.shape):
                slot = self.slot(arg)
            else:
                called = self._constant_name(arg)
                slot = self.graph.parameter(called, laid.to(torch.float64), True)
            with self.graph.called(ir_word(slot.replace(".", "_"))):
                name = self._frozen(slot, shape, kind)
            return Value(name, layout, kind, spread)

        self._kept.append(arg.tensor)
        return self._once(("t", id(arg.tensor), layout, shape), make)

    def _rows_of(self, number: float, layout: Layout) -> Optional[Value]:
        """A number for each row, as many as a float has; None: there is none."""
        floats = [v.name for v in self.named.values() if v.dtype == "f32"]
        floats += [
            node.output
            for node in self.graph.nodes
            if node.dtype == "f32" and node.shape[:1] == (N,)
        ]
        if not floats:
            return None

        def make() -> Value:
            attrs = {"shape": layout.ir()}
            inputs = [self.number(number).name, floats[0]]
            with self.graph.called("full" if number else "zeros"):
                name = self.graph.node("expand", inputs, layout.ir(), attrs=attrs)
            return Value(name, layout)

        return self._once(("full", number, layout), make)

    def _frozen(self, slot: str, shape: Shape, kind: str) -> str:
        """The value of a frozen parameter, which holds integers and truth as floats."""
        params = [("weight", slot)]
        name = self.graph.node("parameter", [], shape, params=params)
        if kind == "i32":
            return self.graph.node("cast", [name], shape, "i32", attrs={"to": "i32"})
        if kind == "bool":
            half = self.number(0.5).name
            return self.graph.node("less", [half, name], shape, "bool")
        return name

    def turned_matrix(self, arg: Any) -> Optional[Param]:
        """The trained matrix whose transpose this value is."""
        return self._turned.get(arg.name) if isinstance(arg, Value) else None

    def slot(self, arg: Any, shape: Optional[Shape] = None) -> str:
        """The name of a parameter for a slot of an op, declared in another shape where
        `shape` says so."""
        if isinstance(arg, Param):
            held = arg.tensor.detach()
            held = held if shape is None else held.reshape(shape)
            frozen = not arg.tensor.requires_grad
            return self.graph.parameter(arg.key, held, frozen, [arg.key])
        if isinstance(arg, Const):
            if id(arg.tensor) not in self._slots:
                self._kept.append(arg.tensor)
                wanted = self._constant_name(arg)
                held = _finite(arg.tensor.detach().to(torch.float64))
                held = held if shape is None else held.reshape(shape)
                targets = [arg.key] if arg.key else []
                self._slots[id(arg.tensor)] = self.graph.parameter(
                    wanted, held, True, targets
                )
            return self._slots[id(arg.tensor)]
        raise Unsupported(
            "its weight is computed, not a parameter",
            "remove the standardisation of weights, or fold it into them",
        )

    def nothing(self, meta: Any) -> Const:
        """A tensor without elements: the rest that a split leaves, for example."""
        sizes = [_at(size, ROWS_FOLDED) for size in meta.shape]
        return Const(torch.zeros(sizes, dtype=meta.dtype), layout_of(meta)[1])

    def full(self, number: float) -> Const:
        """A constant of the present node's shape and type, full of one number."""
        meta = self.node.meta["val"]
        shape = [_at(s, ROWS_FOLDED) for s in meta.shape]
        return Const(torch.full(shape, number, dtype=meta.dtype), layout_of(meta)[1])

    def filled(self, wanted: str, shape: Shape, number: float) -> str:
        """A frozen parameter full of one number, for a slot."""
        tensor = torch.full(shape, number, dtype=torch.float64)
        return self.graph.parameter(wanted, tensor, True)

    def aligned(self, args: Sequence[Any]) -> tuple[list[Value], Layout]:
        """Operands of an element-by-element op with equal ranks in the IR, and the
        layout of the result."""
        values = [self._operand(arg) for arg in args]
        shape, n = self.out()
        if any(isinstance(v, Value) and v.shape == shape for v in values):
            values = [self._as_number(v) for v in values]
        layout = self.broadcast(values, shape, n)
        return [self._fitted(v, layout) for v in self._unexpanded(values)], layout

    def _unexpanded(self, values: Sequence[Any]) -> list[Any]:
        """Without an expand that broadcasting makes unnecessary, as another operand has
        the full sizes."""
        whole = [
            v for v in values if isinstance(v, Value) and v.name not in self.expanded
        ]
        made = []
        for v in values:
            held = self.expanded.get(v.name) if isinstance(v, Value) else None
            if held and held[0] == v.layout and any(w.shape == v.shape for w in whole):
                v = held[1]
            made.append(v)
        return made

    def _as_number(self, v: Any) -> Any:
        """A table without rows that is full of one number as that number."""
        number = one_number(v)
        return v if number is None or v.n is not None else self.number(number)

    def _operand(self, arg: Any) -> Any:
        if isinstance(arg, Const) and arg.tensor.ndim > 0:
            return arg  # laid out once the result's layout is known
        return self.value(arg)

    def _fitted(self, v: Any, layout: Layout) -> Value:
        if not isinstance(v, Const):
            return super()._fitted(v, layout)
        if v.n is None and layout.n is None and v.tensor.ndim > 0:
            lead = (1,) * (layout.rank - v.tensor.ndim)
            target = Layout((*lead, *v.tensor.shape))
            return self._stored(v.tensor, target, v, target.ir())
        if v.n is not None or layout.n is None or v.tensor.ndim == 0:
            return super()._fitted(self._constant_fitted(v, layout), layout)
        target, shape = self.without_rows(tuple(v.tensor.shape), layout)
        return self._stored(v.tensor, target, v, shape)  # in this shape at once

    def constant(self, array: Any) -> Value:
        return self.value(Const(torch.from_numpy(array)))

    def _constant_fitted(self, arg: Const, layout: Layout) -> Value:
        if arg.n is None:
            return self._constant_value(arg)
        lead = layout.rank - arg.tensor.ndim
        own = arg.n + lead
        if own != layout.n:
            raise Unsupported("mixes rows of a batch with each other")
        row = self.one_row(arg, layout.shape[own], layout.before)
        # Like torch's, at N = 1, with N where it is.
        target = Layout(
            tuple(row.shape),
            arg.n,
            *((layout.before, layout.after) if row.shape[arg.n] > 1 else (1, 1)),
        )
        return self._stored(row, target, arg)

    def pointwise(self, op: str, *args: Any, dtype: str = "f32", **attrs: Any) -> Value:
        """An op of one element. Integers are computed as floats, exactly: what needs
        integers casts them."""
        x = args[0]
        if (
            isinstance(x, Value)
            and (x.dtype, x.shape) == ("f32", self.out()[0])
            and (op, args[-1]) in NOTHING
        ):
            return x
        if op not in ("where", "logical_and", "logical_or"):
            args = tuple(self._as_float(arg) for arg in args)
        values, layout = self.aligned(args)
        chosen = values[:1] if op == "where" else []  # the condition stays one
        if op not in ("where", "logical_and", "logical_or"):
            values = [self.real(v) for v in values]
        else:
            rest = values[len(chosen) :]
            mixed = any(v.dtype != "bool" for v in rest)
            values = [*chosen, *(self.real(v) if mixed else v for v in rest)]
            dtype = dtype if mixed or op != "where" else "bool"
        return self.made(op, values, layout, dtype, **attrs)

    def _as_float(self, arg: Any) -> Any:
        """A constant of truth values or integers as one of floats."""
        if not isinstance(arg, Const) or arg.tensor.is_floating_point():
            return arg
        if id(arg.tensor) not in self._real:
            self._kept.append(arg.tensor)
            wide = replace(arg, tensor=arg.tensor.to(torch.float64))
            self._real[id(arg.tensor)] = wide
        return self._real[id(arg.tensor)]

    def real(self, v: Value) -> Value:
        """Integers and truth values as floats: ids by a table whose row i is i."""
        if v.dtype == "bool":
            ones = Const(torch.ones((1,) * v.layout.rank))
            pair = [self._fitted(ones, v.layout), self.number(0.0)]
            return self.made("where", [v, *pair], v.layout)
        if v.dtype != "i32":
            return v
        made = self.graph.by_output.get(v.name)
        if made is not None and made.op == "cast":
            held = Value(made.inputs[0], v.layout, "f32", v.spread)
            if self._is_whole(held.name):
                return held
            whole = self.unary("floor", self.unary("abs", held))
            return self.binary("mul", self.unary("sign", held), whole)
        return self._looked_up(v, 0, self._vocabulary(v.name))

    def begun(self, one: Any, other: Any) -> Optional[Value]:
        """Columns of ids, each with where its rows begin in a table for all of them: of
        each column only ids are valid that stay within the table."""
        if isinstance(one, Const):
            one, other = other, one
        ids = isinstance(one, Value) and one.dtype == "i32"
        if not ids or not isinstance(other, Const) or other.n is not None:
            return None
        held, axis = other.tensor, one.layout.rank - 1
        columns = held.numel() > 1 and held.numel() == held.shape[-1] == one.shape[-1]
        if held.is_floating_point() or not columns or axis == one.layout.n:
            return None
        try:
            rows = self._vocabulary(one.name)
        except Unsupported:
            return None
        begins = [int(begin) for begin in held.reshape(-1)]
        if min(begins) < 0 or max(begins) >= rows:
            return None
        parts = [
            self._looked_up(self.sliced(one, axis, i, i + 1), begin, rows)
            for i, begin in enumerate(begins)
        ]
        return self.concat(parts, axis)

    def shifted(self, one: Any, other: Any) -> Optional[Shifted]:
        """Places of each row, and a constant that is a multiple of the row's number."""
        if isinstance(one, Const):
            one, other = other, one
        constant = isinstance(other, Const) and other.n is not None
        if not isinstance(one, Value) or not constant:
            return None
        rows, n = other.tensor, other.n + one.layout.rank - other.tensor.ndim
        counted = torch.arange(ROWS_FOLDED)
        if rows.is_floating_point() or rows.numel() != ROWS_FOLDED:
            return None
        step = int(rows.flatten()[1])
        if not torch.equal(rows.flatten(), counted * step) or step < 1:
            return None
        lay = one.layout
        return Shifted(one, step) if lay.alone and lay.n == n else None

    def _looked_up(self, v: Value, begin: int, end: int) -> Value:
        """Ids as floats, by a table that counts from `begin`."""
        if (begin, end) not in self._numbers:
            table = torch.arange(begin, end, dtype=torch.float64).reshape(-1, 1)
            slot = self.graph.parameter("numbers", table, True)
            self._numbers[begin, end] = slot
        slots = [("weight", self._numbers[begin, end])]
        name = self.graph.node("embedding", [v.name], (*v.ir, 1), params=slots)
        name = self.graph.reshape(name, (*v.ir, 1), v.ir)
        return Value(name, v.layout, "f32", v.spread)

    def _is_whole(self, name: str) -> bool:
        """A frozen parameter of integers, or places."""
        made = self.graph.by_output.get(name)
        return name in self.whole or (made is not None and made.op == "parameter")

    def _vocabulary(self, name: str) -> int:
        """The most rows of a table that is read by the ids of this input."""
        while name in self.graph.by_output:
            made = self.graph.by_output[name]
            if made.op == "argmax":  # places of the axis that has gone
                source = self.graph.by_output.get(made.inputs[0])
                shape = (
                    source.shape if source else self.graph.inputs_shape(made.inputs[0])
                )
                axis = made.attrs["axis"]
                assert isinstance(axis, int)
                return int(shape[axis]) if shape else 0
            if made.op not in ("reshape", "flatten", "transpose", "slice"):
                raise Unsupported("computes with integers that no table bounds", _REAL)
            name = made.inputs[0]
        rows = 0
        for node in self._module.graph.nodes:
            op, axis = self._op_name(node), 0
            if op in ("aten.embedding", "aten.embedding_bag"):
                table, ids = node.args[:2]
            elif op in ("aten.gather", "aten.scatter", "aten.scatter_add"):
                table, axis, ids = node.args[:3]
            else:
                continue
            while isinstance(ids, torch.fx.Node) and ids.op == "call_function":
                ids = ids.args[0] if ids.args else None
            held = self._env.get(ids) if isinstance(ids, torch.fx.Node) else None
            if isinstance(held, Value) and held.name == name:
                rows = max(rows, int(table.meta["val"].shape[axis]))
        if name in self._origin.below:
            return min(rows or LARGEST_INDEX, self._origin.below[name])
        if rows == 0:
            self.masks.add(name)
        return rows or TRUTH

    def read_elsewhere(self, key: str, padding: int) -> bool:
        """Whether anything but lookups with this padding_idx reads a table."""
        for user in self.readers(key):
            lookup = self._op_name(user) == "aten.embedding"
            given = (*user.args[2:3], user.kwargs.get("padding_idx", -1))[0]
            if not lookup or given != padding:
                return True
        return False

    def readers(self, key: str) -> list[Any]:
        """Needed nodes that read a parameter."""
        held = (node for node in self._module.graph.nodes if node.op == "placeholder")
        own = [n for n in held if getattr(self._env.get(n), "key", None) == key]
        return [user for node in own for user in node.users if user in self.needed]


_TENSORS = (Value, Param, Const, Noise, Uniform, Kept, Stacked, Complex, Shifted)
_CHECKS = ("aten._assert", "aten.sym_constrain", "aten._check")
_EMPTY = {"aten.empty", "aten.new_empty", "aten.empty_like"}
_RANDOM = {
    "aten.rand", "aten.randn", "aten.bernoulli", "aten.rand_like", "aten.randn_like",
    "aten.normal", "aten.uniform", "aten.randint", "aten.multinomial", "aten.randperm",
}  # fmt: skip
_RANDOM |= {f"{name}_" for name in _RANDOM} | {"aten.exponential_", "aten.random_"}
_DRAWS = re.compile(r"dropout|bernoulli|attention|\.(lstm|gru|rnn_\w+)$")
_VIEWS = {
    "aten.view", "aten.reshape", "aten.flatten", "aten.unsqueeze", "aten.squeeze",
    "aten.contiguous", "aten.clone", "aten.to", "aten.long", "aten.detach",
}  # fmt: skip
_TURNS = {
    "aten.t", "aten.transpose", "aten.permute", "aten.numpy_T", "aten.mT", "aten.mH",
    "aten.adjoint", "aten.swapaxes", "aten.swapdims",
}  # fmt: skip
# They write to buffers as a part of what they are.
_MUTATES_STATISTICS = {
    "aten.batch_norm",
    "aten._native_batch_norm_legit",
    "aten.instance_norm",
}


def _is_complex(one: Any) -> bool:
    tensor = getattr(one, "tensor", one)
    return isinstance(one, Complex) or (
        isinstance(tensor, torch.Tensor) and tensor.is_complex()
    )


def _is_random(arg: Any) -> bool:
    """Memory that nothing has written is no noise."""
    noise = isinstance(arg, Noise) and arg.keep < 1
    return noise or isinstance(arg, (Uniform, Kept))


def _finite(tensor: Any) -> Any:
    """-inf of an added mask as -1e30: below it exp is 0 too. So is the least float64,
    which a mask made of torch.finfo holds here: a file of float32 cannot."""
    if not tensor.is_floating_point() or bool((tensor.abs() <= LARGEST).all()):
        return tensor
    held = tensor.where(tensor <= LARGEST, 1e30).where(tensor >= -LARGEST, -1e30)
    return held.where(~tensor.isnan(), math.nan)


def one_number(arg: Any) -> Optional[float]:
    """What a computed tensor of floats is full of; of the user's own tensors None."""
    if not isinstance(arg, Const) or arg.key or not arg.tensor.is_floating_point():
        return None
    numbers = arg.tensor.detach().flatten()
    full = numbers.numel() > 1 and bool((numbers == numbers[0]).all())
    return float(numbers[0]) if full else None


def flat(items: Any) -> list[Any]:
    found = []
    for item in items:
        found += flat(item) if isinstance(item, (list, tuple)) else [item]
    return found


def _at(size: Any, rows: int) -> Any:
    """A symbolic size where the batch has `rows` rows."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    value = expression.subs(dict.fromkeys(expression.free_symbols, rows))
    return float(value) if isinstance(size, torch.SymFloat) else int(value)


def nearest(op: str) -> tuple[str, str]:
    """Why an op without a row is refused, and the nearest thing that works."""
    short = op.removeprefix("aten.").rstrip("_")
    for words, remedy in _INSTEAD:
        if short in words.split():
            return "has no counterpart in the IR", remedy
    return "has no counterpart in the IR", _SPELLED


def changes_parameter(key: str) -> tuple[str, str]:
    """What forward does, and what to do instead."""
    return (
        f"changes the parameter '{key}' in the forward pass",
        "a mask of a weight is multiplied as the weight is read, weight * mask; what "
        "the first batch sets is set in make, by a batch of your data; what keeps "
        "weights in bounds stands behind the optimizer's step; RWKV: rescale_every=0",
    )


_REAL = "give numbers as an input of floats: f32[...]"
_SPELLED = "spell it with ops of docs/import.md"
_INSTEAD = [
    (
        "sort argsort topk msort kthvalue median mode unique _unique2",
        "a maximum or a sum over the axis works",
    ),
    ("nonzero masked_select", "a mask with torch.where keeps the shape fixed"),
    ("masked_scatter", "torch.where, or a product with one_hot"),
    ("stft istft", "a convolution or a matrix product"),
    (
        "linalg_inv linalg_svd linalg_solve linalg_eigh linalg_qr linalg_cholesky",
        "no decomposition of matrices works",
    ),
    (
        "randn rand randn_like rand_like normal bernoulli",
        "nn.Dropout, or noise as an input of the model",
    ),
    ("rrelu", "nn.LeakyReLU"),
    (
        "l1_loss mse_loss smooth_l1_loss huber_loss nll_loss nll_loss_nd kl_div "
        "cross_entropy_loss binary_cross_entropy binary_cross_entropy_with_logits",
        "return the prediction: --loss names the loss",
    ),
    ("fractional_max_pool2d", "nn.MaxPool2d"),
    ("embedding_renorm", "max_norm=None"),
    ("col2im", "nn.ConvTranspose2d"),
    ("im2col unfold", "nn.Conv2d, or slices"),
    ("deform_conv2d", "nn.Conv2d"),
]
