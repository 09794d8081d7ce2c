"""Walks a graph of Keras layers and operations and maps it, by the tables of rows
(keras_layers.py, keras_ops.py).

Layers without a row, of the user's own above all, are traced: their `call` runs on
symbolic tensors, and what it calls is mapped in their place.
"""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Sequence

import numpy as np

from bakeoff_import.builder import Builder
from bakeoff_import.graph import ir_word
from bakeoff_import.keras_names import Names
from bakeoff_import.keras_setup import line_of
from bakeoff_import.keras_tensor import FIRST, FLAT, PLAIN, ROW, Form, Held, Read
from bakeoff_import.origin import user_place
from bakeoff_import.problems import ImportProblem, Refusal, Unsupported, first_line
from bakeoff_import.values import Layout, Shape, Value

Row = Callable[["Walk", Any, "Call"], Any]
LAYERS: dict[str, Row] = {}
OPERATIONS: dict[str, Row] = {}
REFUSED: dict[str, tuple[str, str]] = {}  # layers -> why, and what works


def layer(*names: str) -> Callable[[Row], Row]:
    return _register(LAYERS, names)


def operation(*names: str) -> Callable[[Row], Row]:
    return _register(OPERATIONS, names)


def _register(table: dict[str, Row], names: Sequence[str]) -> Callable[[Row], Row]:
    def register(function: Row) -> Row:
        table.update(dict.fromkeys(names, function))
        return function

    return register


@dataclass
class Call:
    """Arguments of one call by the names of the operation's `call`."""

    arguments: dict[str, Any]
    training: bool
    node: Any = None

    def __getattr__(self, name: str) -> Any:
        try:
            return self.arguments[name]
        except KeyError:
            raise AttributeError(name) from None

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    @property
    def first(self) -> Any:
        return next(iter(self.arguments.values()))


@dataclass
class Traced:
    """What a layer's `call` did with symbolic tensors."""

    inputs: list[Any]
    outputs: list[Any]

    def nodes(self) -> list[Any]:
        """In an order in which they can be computed."""
        made: list[Any] = []
        seen: set[int] = set()
        stack = [(x, False) for x in reversed(self.outputs)]
        own = {id(x) for x in self.inputs}
        while stack:
            x, ready = stack.pop()
            history = getattr(x, "_keras_history", None)
            if id(x) in own or history is None or history.operation is None:
                continue
            node = history.operation._inbound_nodes[history.node_index]
            if ready:
                made.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((x, True))
                stack += [(y, False) for y in reversed(node.input_tensors)]
        return made


def in_order(graph: Any) -> list[Any]:
    """The nodes of a graph that compute something."""
    if isinstance(graph, Traced):
        return graph.nodes()
    depths = graph._nodes_by_depth
    nodes = [node for depth in sorted(depths, reverse=True) for node in depths[depth]]
    return [node for node in nodes if node.operation is not None and not node.is_input]


def graph_of(keras: Any, model: Any) -> Any:
    """The graph that a model's `call` runs; None where it has a `call` of its own."""
    if not str(getattr(type(model).call, "__module__", "")).startswith("keras."):
        return None
    if isinstance(model, keras.Sequential):
        return model._functional
    return model if hasattr(model, "_nodes_by_depth") else None


def masked(x: Any) -> bool:
    """Whether Keras hands a mask on with this tensor."""
    return getattr(x, "_keras_mask", None) is not None


MASK = object()  # in place of a mask: who reads it is refused


class Blocked(Exception):
    """An input cannot be imported; that was said already."""


class Walk(Builder):
    def __init__(
        self,
        keras: Any,
        folder: str,
        model: Any,
        training: bool,
        dropout: bool = True,
        norm_modes: Optional[Sequence[bool]] = None,
        ops: Sequence[str] = (),
    ) -> None:
        """dropout: False leaves it out. norm_modes: of every batch norm, in order,
        whether it takes the batch's statistics in training."""
        super().__init__(ops)
        self.keras = keras
        self.folder = folder
        self.tall = not self.known("conv1d")  # one axis is that of pictures of height 1
        self.training = training
        self.dropout = dropout
        self.norm_modes: list[bool] = []
        self.known_modes = norm_modes
        self.reads: dict[str, Read] = {}  # parameters of the IR
        self.named: dict[str, tuple[Any, Held]] = {}  # values -> symbolic tensors
        self.turned: dict[str, Any] = {}  # values that are a variable transposed
        self.constants: set[int] = set()  # variables whose numbers are constants
        self._trained = {id(v) for v in model.trainable_variables}
        self._prefix = f"{model.name}/"
        self._names = Names(self.key(v) for v in model.weights)
        self._kept: list[Any] = []  # arrays whose identity is a key
        self._top = True  # in the graph of the model itself
        self._overrides = True  # in a functional graph, which hands its mode on

    # -- the walk

    def run(self, graph: Any, inputs: Sequence[Held], training: bool) -> list[Any]:
        """Maps a functional graph; its outputs, in order."""
        env: dict[int, Any] = {id(k): held for k, held in zip(graph.inputs, inputs)}
        nodes = in_order(graph)
        masks = {id(x._keras_mask) for node in nodes for x in node.outputs if masked(x)}
        for node in nodes:
            if any(id(x) not in env for x in node.input_tensors):
                continue
            if all(id(x) in masks for x in node.outputs):
                env.update((id(x), MASK) for x in node.outputs)
                continue
            outputs = self._node(node, env, training)
            flat = outputs if outputs is None else self._flat(outputs)
            for i, x in enumerate(node.outputs):
                env[id(x)] = None if flat is None else flat[i]
                if flat is not None and self._top and isinstance(flat[i], Held):
                    self.named[flat[i].value.name] = (x, flat[i])
        return [env.get(id(x)) for x in graph.outputs]

    def _flat(self, outputs: Any) -> list[Any]:
        return list(self.keras.tree.flatten(outputs))

    def _node(self, node: Any, env: dict[int, Any], training: bool) -> Any:
        """The outputs of a node; None where it cannot be imported."""
        op = node.operation
        with self._place(op, line_of(node)):
            try:
                self._check_inherited_mask(op, node)
                if any(env[id(x)] is MASK for x in node.input_tensors):
                    raise Unsupported("takes a mask", _NO_MASK)
                if any(env[id(x)] is None for x in node.input_tensors):
                    self._refuse_by_name(op)
                    return None
                args, kwargs = node.arguments.fill_in(env)
                return self.call(op, args, kwargs, training, node)
            except Blocked:
                return None
            except Unsupported as why:
                self.refuse(op, str(why), why.remedy)
                return None

    @contextlib.contextmanager
    def _place(self, op: Any, line: str) -> Iterator[None]:
        """Values that are added meanwhile have the operation's name and line."""
        graph = self.graph
        before = graph.base, graph.named, graph.where, graph.source
        base = ir_word(op.name)
        base = base if base[0].isalpha() else f"{type(op).__name__.lower()}_{base}"
        # A layer that is named for what it holds keeps its name, an op of keras.ops
        # within a layer is called after it.
        graph.base, graph.named = base, False
        graph.where = line or graph.where
        graph.source = type(op).__name__
        try:
            yield
        finally:
            graph.base, graph.named, graph.where, graph.source = before

    def refuse(self, op: Any, why: str, remedy: str) -> None:
        name = type(op).__name__
        if isinstance(op, self.keras.Layer):
            name = f"layer '{op.name}' ({name})"
        else:
            name = f"keras.ops {name}"
        refusal = Refusal(name, self.graph.where, why, remedy)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def _refuse_by_name(self, op: Any) -> None:
        """Behind what is refused: only what is refused whatever it reads."""
        with contextlib.suppress(Blocked):
            known = row_of(op)
            if known is None and not isinstance(op, self.keras.Layer):
                self.refuse(op, *_NO_ROW)
            elif known is None and type(op).__name__ in REFUSED:
                self.refuse(op, *REFUSED[type(op).__name__])

    def call(
        self, op: Any, args: Any, kwargs: Any, training: bool, node: Any = None
    ) -> Any:
        """Maps one call of a layer or operation."""
        given = dict(kwargs)
        explicit = given.pop("training", None)
        # A functional graph hands its own mode on, whatever stands at the call.
        mode = training if explicit is None or self._overrides else bool(explicit)
        self._check_masks(op, given)
        if isinstance(op, self.keras.Model):
            if isinstance(op, self.keras.Sequential) and not op.built:
                raise Unsupported("was never built", "call it, or begin with an Input")
            if (graph := graph_of(self.keras, op)) is not None:
                return self._nested(graph, args, given, mode)
        found = row_of(op)
        if found is None:
            if not isinstance(op, self.keras.Layer):
                raise Unsupported(*_NO_ROW)
            if type(op).__name__ in REFUSED and _is_keras(type(op)):
                raise Unsupported(*REFUSED[type(op).__name__])
            return self.traced(op, args, given, mode)
        call = Call(_bound(op, args, given), mode, node)
        for key, one in call.arguments.items():
            mask = key == "mask" or (key.endswith("_mask") and key != "attention_mask")
            if isinstance(op, self.keras.Layer) and mask and isinstance(one, Held):
                raise Unsupported(f"takes a mask ({key})", _NO_MASK)
        return found(self, op, call)

    def _check_inherited_mask(self, op: Any, node: Any) -> None:
        """Keras gives a layer the mask that a layer before it made of its values."""
        if not isinstance(op, self.keras.Layer) or not any(
            masked(x) for x in node.input_tensors
        ):
            return
        takes = any("mask" in name for name in inspect.signature(op.call).parameters)
        if takes or row_of(op) is None:
            raise Unsupported("takes the mask that its input carries", _NO_MASK)

    def drops(self, rate: Any, training: bool) -> bool:
        """Whether a layer drops out now."""
        if float(rate or 0) == 0 or not training:
            return False
        if not self.training:
            raise Unsupported("drops out in inference too", "training=None at its call")
        return self.dropout

    def _check_masks(self, op: Any, given: dict[str, Any]) -> None:
        masks = [k for k in list(given) if k == "mask" or k.endswith("_mask")]
        for key in masks:
            if given[key] is None:
                del given[key]
        if getattr(op, "mask_zero", False):
            raise Unsupported(
                "masks padding (mask_zero)",
                "mask_zero=False; attention takes a mask as an input of its own",
            )
        if getattr(op, "stateful", False):
            raise Unsupported(
                "keeps its state from batch to batch (stateful)", "stateful=False"
            )
        if getattr(op, "lora_enabled", False):
            raise Unsupported("has LoRA weights", "merge them, or freeze the layer")
        if getattr(op, "quantization_mode", None):
            raise Unsupported("is quantised", "import the model before that")

    def _nested(self, graph: Any, args: Any, kwargs: Any, training: bool) -> Any:
        """A model that is called like a layer."""
        if any(key == "mask" for key in kwargs):
            raise Unsupported("takes a mask", _NO_MASK)
        inputs = self._flat(args[0] if args else next(iter(kwargs.values())))
        outputs = self.run_within(graph, inputs, training)
        struct = getattr(graph, "_outputs_struct", None)
        packed = self.keras.tree.pack_sequence_as(struct, outputs)
        if isinstance(packed, (list, tuple)) and len(packed) == 1:
            return packed[0]
        return packed

    def run_within(
        self, graph: Any, inputs: Sequence[Any], training: bool
    ) -> list[Any]:
        """As run(), below the graph of the model."""
        held = [self.held(x) for x in inputs]
        before = self._top, self._overrides
        self._top, self._overrides = False, hasattr(graph, "_layers")
        try:
            outputs = self.run(graph, held, training)
        finally:
            self._top, self._overrides = before
        if any(out is None for out in outputs):
            raise Blocked
        return outputs

    # -- tracing

    def traced(self, op: Any, args: Any, kwargs: Any, training: bool) -> Any:
        """Maps what a layer's `call` does."""
        given = dict(kwargs)
        parameters = inspect.signature(op.call).parameters
        if "training" in parameters:
            given["training"] = training
        return self.traced_function(op.call, args, given, training)

    def traced_function(
        self, function: Any, args: Any, kwargs: Any, training: bool
    ) -> Any:
        keras, tree = self.keras, self.keras.tree
        inputs: list[Any] = []
        symbols: list[Any] = []

        def symbol(x: Any) -> Any:
            if not isinstance(x, Held):
                return x
            kind = {"f32": "float64", "i32": "int32", "bool": "bool"}[x.dtype]
            made = keras.KerasTensor(x.symbolic, dtype=kind)
            inputs.append(x)
            symbols.append(made)
            return made

        args = tree.map_structure(symbol, args)
        kwargs = tree.map_structure(symbol, kwargs)
        place, name = self.graph.where, getattr(function, "__qualname__", "call")
        try:
            with symbolic_variables(keras), in_mode(training):
                made = function(*args, **kwargs)
        except ImportProblem:
            raise
        except Unsupported as error:
            self.graph.where = user_place(error, self.folder) or place
            raise
        except Exception as error:
            self.graph.where = user_place(error, self.folder) or place
            raise Unsupported(
                f"{name} cannot be traced: {first_line(error)[:200]}",
                "keras.ops, in place of another framework's functions and of branches "
                "on values",
            ) from error
        flat = tree.flatten(made)
        kept = [x for x in flat if isinstance(x, keras.KerasTensor)]
        if not kept:
            raise Unsupported(f"{name} gives no tensor that depends on its input")
        if any(masked(x) for x in kept):
            raise Unsupported(f"{name} gives its output a mask", _NO_MASK)
        graph = Traced(symbols, kept)
        results = iter(self.run_within(graph, inputs, training))
        found = [next(results) if isinstance(x, keras.KerasTensor) else x for x in flat]
        return tree.pack_sequence_as(made, found)

    # -- parameters and constants

    def array(self, variable: Any) -> Any:
        """What a variable or tensor holds, as a constant of the import."""
        self.constants.add(id(variable))
        return to_numpy(variable)

    def key(self, variable: Any) -> str:
        return str(variable.path).removeprefix(self._prefix)

    def slot(self, variable: Any, *steps: Any, part: str = "") -> str:
        """The name of the parameter for a slot of an op, in the form that it reads.

        part: the slot, where several parameters are parts of the variable."""
        form = Form(tuple(steps))
        target = (*self._target(variable), *([part] if part else []))
        known = self.graph.by_target.get(target)
        if known is not None:
            if self.reads[known].form != form:
                raise Unsupported(
                    f"reads '{self.key(variable)}' in another form than another layer"
                )
            return known
        array = np.asarray(to_numpy(variable), dtype=np.float64)
        frozen = id(variable) not in self._trained
        wanted = self._names.name(self.key(variable), part)
        made = self.graph.parameter(wanted, form.apply(array), frozen, target)
        self.reads[made] = Read(variable, form)
        return made

    def _target(self, variable: Any) -> tuple[str, ...]:
        self._kept.append(variable)
        return (f"{self.key(variable)}#{id(variable)}",)

    def variable(self, variable: Any) -> Value:
        """A variable as a value without N, in Keras's axes."""

        def make() -> Value:
            known = self.graph.by_target.get(self._target(variable))
            if known is not None and self.reads[known].form.steps:
                return self._undone(known)
            slot = known or self.slot(variable)
            return self._parameter(slot, tuple(variable.shape))

        return self._once(("v", id(variable)), make)

    def _parameter(self, slot: str, shape: Shape) -> Value:
        layout = Layout(shape)
        with self.graph.called(ir_word(slot.replace(".", "_"))):
            made = [("weight", slot)]
            name = self.graph.node("parameter", [], shape, params=made)
            name = self.graph.reshape(name, shape, layout.ir())
        return Value(name, layout)

    def _undone(self, slot: str) -> Value:
        """A parameter that is declared in another form, in Keras's axes again."""
        read = self.reads[slot]
        shape = tuple(self.graph.parameters[slot].tensor.shape)
        value = self._parameter(slot, shape)
        shapes = [tuple(read.variable.shape)]
        for step in read.form.steps:
            shapes.append(Form((step,)).apply(np.empty(shapes[-1])).shape)
        for step, before in reversed(list(zip(read.form.steps, shapes))):
            if step[0] == "transpose":
                value = self.permuted(value, list(np.argsort(step[1])))
            elif step[0] == "reshape":
                value = self.reshaped(value, Layout(before))
            else:
                raise Unsupported(f"reads '{self.key(read.variable)}' in two forms")
        return value

    def truth(self, name: str, layout: Layout) -> Value:
        """An input of truth values, which the IR has as integers."""
        with self.graph.called(name):
            table = self.graph.parameter(f"{name}_truth", np.arange(2.0)[:, None], True)
            wide = Layout((*layout.shape, 1), layout.n)
            ids, slots = Value(name, layout, "i32"), [("weight", table)]
            number = self.reshaped(
                self.made("embedding", [ids], wide, params=slots), layout
            )
            return self.made("less", [self.number(0.5), number], layout, "bool")

    def real(self, v: Value) -> Value:
        """Integers as floats: those of a constant. The IR has no others as numbers."""
        if v.dtype != "i32":
            return v
        made = self.graph.by_output.get(v.name)
        source = made and made.op == "cast" and self.graph.by_output.get(made.inputs[0])
        if made is None or not source or source.op != "parameter":
            raise Unsupported(
                "takes integers as numbers, which the IR has as indices alone",
                "keras.Input(..., dtype='float32'), or 'bool' for a mask",
            )
        return Value(source.output, v.layout, "f32", v.spread)

    def constant(self, array: Any) -> Value:
        array = np.asarray(array)
        if array.ndim == 0:
            return self.number(float(array))
        layout = Layout(array.shape)
        stored = self.stored(array, layout.ir())
        return Value(stored.name, layout, stored.dtype)

    def stored(self, array: Any, shape: Shape) -> Value:
        """A frozen parameter of the IR with this content and shape, as a value."""
        whole = array.dtype.kind in "iu"
        kind = "bool" if array.dtype == bool else "i32" if whole else "f32"
        laid = array.reshape(shape)
        layout = Layout(tuple(shape))

        def make() -> Value:
            wanted = f"constant_{self.graph.base}"
            slot = self.graph.parameter(wanted, laid.astype(np.float64), True)
            with self.graph.called(ir_word(slot.replace(".", "_"))):
                params = [("weight", slot)]
                name = self.graph.node("parameter", [], shape, params=params)
                if kind == "i32":
                    attrs: dict[str, Any] = {"to": "i32"}
                    name = self.graph.node("cast", [name], shape, "i32", attrs=attrs)
                elif kind == "bool":
                    half = self.number(0.5).name
                    name = self.graph.node("less", [half, name], shape, "bool")
            return Value(name, layout, kind)

        return self._once(("c", kind, shape, laid.tobytes()), make)

    def filled(self, wanted: str, shape: Shape, number: float) -> str:
        """A frozen parameter full of one number, for a slot."""
        return self.graph.parameter(wanted, np.full(shape, number), True)

    # -- forms

    def value(self, arg: Any) -> Value:
        """In Keras's axes."""
        return self.plain(self.held(arg))

    def held(self, arg: Any) -> Held:
        if isinstance(arg, Held):
            return arg
        if isinstance(arg, Value):
            return Held(arg)
        if isinstance(arg, (bool, int, float, np.generic)):
            return Held(self.number(float(arg)))
        if is_variable(self.keras, arg):
            return Held(self.variable(arg))
        if isinstance(arg, (list, tuple)) and any(isinstance(x, Held) for x in arg):
            raise Unsupported(
                "takes a list where a tensor is expected", "keras.ops.stack"
            )
        if arg is None:
            raise Unsupported("takes None where a tensor is expected")
        try:
            array = to_numpy(arg)
        except Exception as error:
            raise Unsupported(
                f"takes {type(arg).__name__} where a tensor is expected"
            ) from error
        if array.dtype.kind not in "fiub":
            raise Unsupported(f"takes {array.dtype} where numbers are expected")
        return Held(self.constant(array))

    def plain(self, held: Held) -> Value:
        """In Keras's axes."""
        v = held.value
        if held.form == PLAIN:
            return v
        if held.form == FLAT:
            c, *space = held.picture
            wide = self.reshaped(v, Layout((1, c, *space), 0))
            last = self.plain(Held(wide, FIRST))
            return self.reshaped(last, Layout((1, held.value.shape[1]), 0))
        _, c, *space = v.shape
        if held.form == ROW:
            wide = self._last(v)
            return self.reshaped(wide, Layout((1, space[1], c), v.layout.n))
        return self._last(v)

    def _last(self, v: Value) -> Value:
        """Channels from axis 1 to the last one."""
        _, c, *space = v.shape
        if c == 1 or all(s == 1 for s in space):
            return self.reshaped(v, Layout((v.shape[0], *space, c), v.layout.n))
        rank = v.layout.rank
        with self.graph.called(f"{v.name}_last"):
            return self.permuted(v, [0, *range(2, rank), 1])

    def _first(self, v: Value) -> Value:
        """Channels from the last axis to axis 1."""
        *_, c = v.shape
        space = v.shape[1:-1]
        if c == 1 or all(s == 1 for s in space):
            return self.reshaped(v, Layout((v.shape[0], c, *space), v.layout.n))
        rank = v.layout.rank
        with self.graph.called(f"{v.name}_first"):
            return self.permuted(v, [0, rank - 1, *range(1, rank - 1)])

    def first(self, held: Held) -> Held:
        """N,C,H,W where Keras has N,H,W,C."""
        if held.form == FIRST:
            return held
        v = self.plain(held)
        if v.layout.n not in (0, None) or not v.layout.alone:
            raise Unsupported(
                "the batch must be axis 0 here, and not merged with another axis",
                "bring the batch first before this layer",
            )
        return Held(self._first(v), FIRST)

    def row(self, held: Held) -> Held:
        """N,C,1,T where Keras has N,T,C; N,C,T where the IR has ops along one axis."""
        if not self.tall:
            return self.first(held)
        if held.form == ROW:
            return held
        v = self.plain(held)
        if v.layout.n not in (0, None) or not v.layout.alone:
            raise Unsupported("the batch must be axis 0 here", "bring it to the front")
        _, t, c = v.shape
        wide = self.reshaped(v, Layout((v.shape[0], 1, t, c), v.layout.n))
        return Held(self._first(wide), ROW)

    def formed(self, held: Held, form: str) -> Held:
        if form == FIRST:
            return self.first(held)
        if form == ROW:
            before, self.tall = self.tall, True
            try:
                return self.row(held)
            finally:
                self.tall = before
        return Held(self.plain(held))

    # -- steps for the rows

    def pointwise(self, op: str, *args: Any, dtype: str = "f32", **attrs: Any) -> Held:
        """An op of one element, with broadcasting. Integers are computed as floats."""
        arrays = [self._array(a) for a in args]
        held = [None if b is not None else self.held(a) for a, b in zip(args, arrays)]
        whole = dtype == "f32" and all(
            h.dtype == "i32" if h is not None else b.dtype.kind in "iu"
            for h, b in zip(held, arrays)
        )
        held = [h and Held(self.real(h.value), h.form, h.picture) for h in held]
        arrays = [
            b if b is None or b.dtype == bool else b.astype("float64") for b in arrays
        ]
        form, picture = self._common_form(held, arrays)
        rank = max(b.ndim if h is None else h.rank for h, b in zip(held, arrays))
        values = [
            array_formed(b, form, rank) if h is None else self._operand(h, form, rank)
            for h, b in zip(held, arrays)
        ]
        ranks = max(_rank(v) for v in values)
        padded = [(1,) * (ranks - _rank(v)) + tuple(v.shape) for v in values]
        shape = tuple(np.broadcast_shapes(*padded))
        lays = [v.layout for v in values if isinstance(v, Value)]
        held_n = [(y.n + ranks - y.rank, y.shape[y.n]) for y in lays if y.n is not None]
        n = held_n[0][0] if held_n else None
        if n is not None and shape[n] != held_n[0][1]:
            raise Unsupported("has a number of rows built in", "size 1 at the batch")
        layout = self.broadcast(values, shape, n)
        fitted = [
            self._fitted(v, layout) if isinstance(v, Value) else self.laid(v, layout)
            for v in values
        ]
        out = self.made(op, fitted, layout, dtype, **attrs)
        if whole:
            out = self.unary("cast", out, "i32", to="i32")
        return Held(out, form, picture)

    def _common_form(
        self, held: Sequence[Optional[Held]], arrays: Sequence[Any]
    ) -> tuple[str, Shape]:
        """The form that an op's operands are brought to."""
        lead = next((h for h in held if h is not None and h.form != PLAIN), None)
        if lead is None:
            return PLAIN, ()
        ranks = [b.ndim if h is None else h.rank for h, b in zip(held, arrays)]
        if lead.form == FLAT:
            like = (FLAT, lead.picture)
            same = all(
                h is not None and (h.rank == 0 or (h.form, h.picture) == like)
                for h in held
            )
            return (FLAT, lead.picture) if same else (PLAIN, ())
        return (lead.form if lead.rank == max(ranks) else PLAIN), ()

    def _operand(self, held: Held, form: str, rank: int) -> Value:
        if held.rank == 0 or form in (PLAIN, FLAT):
            return held.value if form == FLAT else self.plain(held)
        if held.rank < rank:
            if held.n is not None:
                raise Unsupported("mixes rows of a batch with each other")
            v = self.plain(held)
            wide = (1,) * (rank - v.layout.rank) + v.shape
            held = Held(self.reshaped(v, Layout(wide)))
        return self.formed(held, form).value

    def _array(self, arg: Any) -> Any:
        """A constant with axes; None for all else."""
        if isinstance(arg, (Held, Value, bool, int, float, np.generic)) or arg is None:
            return None
        if is_variable(self.keras, arg):
            return None
        flat = self._flat(arg) if isinstance(arg, (list, tuple)) else []
        if any(
            isinstance(x, (Held, Value)) or is_variable(self.keras, x) for x in flat
        ):
            return None
        try:
            array = to_numpy(arg)
        except Exception:
            return None
        return array if array.ndim > 0 and array.dtype.kind in "fiub" else None

    def laid(self, array: Any, layout: Layout) -> Value:
        """A constant as an operand, declared in the shape that it is read in."""
        if layout.n is None:
            return self._fitted(self.constant(array), layout)
        target, shape = self.without_rows(tuple(array.shape), layout)
        stored = self.stored(array, shape)
        return Value(stored.name, target, stored.dtype, spread=True)

    def one(self, op: str, arg: Any, dtype: str = "", **attrs: Any) -> Held:
        """An op of one tensor, element by element."""
        held = self.held(arg)
        out = self.unary(op, held.value, dtype or held.dtype, **attrs)
        return Held(out, held.form, held.picture)

    def rows_apart(self, arg: Any, rank: Optional[int] = None) -> Value:
        """A value in Keras's axes with N first and alone."""
        return self.batch_first(self.value(arg), rank)

    def reduce(self, op: str, arg: Any, axis: Any, keep: bool) -> Held:
        held = self.held(arg)
        if held.form == FLAT:
            held = Held(self.plain(held))
        if axis is None:
            axes = list(range(held.rank))
        else:
            axes = [axis] if isinstance(axis, int) else list(axis)
        axes = [held.axis(a) for a in axes]
        left = [a for a in range(1, held.rank) if a not in axes]
        if held.form != PLAIN and not keep and len(left) > 1:
            held = Held(self.plain(held))
        laid = [held.laid(a) for a in axes]
        if held.form == ROW and not keep:
            laid += [] if 3 not in laid else [2]
            if 3 not in laid:
                held = Held(self.plain(held))
                laid = axes
        out = self.reduced(op, self.real(held.value), sorted(laid), keep)
        return Held(out, held.form if keep else PLAIN)


def _rank(v: Any) -> int:
    return v.layout.rank if isinstance(v, Value) else v.ndim


def array_formed(array: Any, form: str, rank: int) -> Any:
    """A constant operand in a form."""
    if form in (PLAIN, FLAT):
        return array
    wide = array.reshape((1,) * (rank - array.ndim) + array.shape)
    if form == ROW:
        wide = wide[:, None]
    return np.ascontiguousarray(np.moveaxis(wide, -1, 1))


_NO_MASK = (
    "sequences of one length; MultiHeadAttention takes an attention_mask, an input of "
    "its own"
)
_NO_ROW = ("has no counterpart in the IR", "spell it with ops of docs/import.md")


def row_of(op: Any) -> Optional[Row]:
    """The row of a layer whose `call` is Keras's own, or of an operation."""
    kind = type(op)
    call = getattr(kind, "call", None)
    for base in kind.__mro__:
        if not _is_keras(base):
            continue
        if getattr(base, "call", None) is not call:
            return None
        table = LAYERS if hasattr(base, "build") else OPERATIONS
        found = table.get(base.__name__)
        if found is not None:
            return found
        if base is kind or "call" in vars(base):
            return None
    return None


def _is_keras(kind: Any) -> bool:
    return str(kind.__module__).startswith("keras.")


def _bound(op: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    try:
        bound = inspect.signature(op.call).bind(*args, **kwargs)
    except TypeError as error:
        raise Unsupported(
            f"is called with arguments that it has not: {error}"
        ) from error
    bound.apply_defaults()
    return dict(bound.arguments)


def is_variable(keras: Any, arg: Any) -> bool:
    return isinstance(arg, variable_type())


def variable_type() -> Any:
    """The base of all backends' variables."""
    from keras.src.backend.common import variables

    return getattr(variables, "KerasVariable", None) or variables.Variable


def to_numpy(tensor: Any) -> Any:
    import keras

    return np.asarray(keras.ops.convert_to_numpy(tensor))


@contextlib.contextmanager
def in_mode(training: bool) -> Iterator[None]:
    """Layers that are called meanwhile take this mode where the call names none."""
    from keras.src.backend.common import global_state
    from keras.src.layers.layer import CallContext

    before = global_state.get_global_attribute("current_call_ctx")
    context = CallContext(entry_layer=None)
    context.training = training
    global_state.set_global_attribute("current_call_ctx", context)
    try:
        yield
    finally:
        global_state.set_global_attribute("current_call_ctx", before)


# ---- variables as symbols

_TWO = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "pow": "power", "matmul": "matmul",
}  # fmt: skip


# Operations that run functions, whose own operations a trace does not see.
_RUNS = (
    "Cond", "Switch", "WhileLoop", "ForiLoop", "Scan", "AssociativeScan", "Map",
    "VectorizedMap",
)  # fmt: skip
_DRAWS = (
    "normal", "uniform", "randint", "categorical", "truncated_normal", "shuffle",
    "gamma", "binomial", "beta",
)  # fmt: skip
RANDOM = (
    "draws random numbers",
    "keras.layers.Dropout, with a noise_shape for what is dropped together",
)


# Keras would put arguments into its message, and lose what helps.
Unsupported._keras_call_info_injected = True  # type: ignore[attr-defined]


def _assigned(self: Any, *args: Any, **kwargs: Any) -> Any:
    if "seed_generator" in self.path:
        raise Unsupported(*RANDOM)
    raise Unsupported(
        f"assigns to '{self.path}' in its call",
        "only batch norm's statistics may change in a step",
    )


def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise Unsupported(
        f"runs functions by the values of tensors ({type(self).__name__})",
        "keras.ops.where; a loop of Python over a size",
    )


def _spec_by_call(keras: Any) -> Any:
    """What a layer of the user's own gives is found out by its call: backends would
    compute with variables, which are symbols here."""
    plain = keras.Layer.compute_output_spec

    def like(x: Any) -> Any:
        symbol = isinstance(x, keras.KerasTensor)
        return keras.KerasTensor(x.shape, dtype=x.dtype) if symbol else x

    def spec(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = row_of(self) is None and not _is_keras(type(self))
        if own and keras.src.utils.is_default(self.compute_output_shape):
            return keras.tree.map_structure(like, self.call(*args, **kwargs))
        return plain(self, *args, **kwargs)

    return spec


def _drawn(function: Any) -> Any:
    """Random numbers are constants where the seed is a number."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(kwargs.get("seed"), int):
            raise Unsupported(*RANDOM)
        return function(*args, **kwargs)

    return draw


def _as_layer(keras: Any) -> Any:
    """A function that drops is mapped as the layer."""

    def drop(x: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
        if isinstance(seed, int) or not isinstance(x, keras.KerasTensor):
            raise Unsupported(*RANDOM)
        return keras.layers.Dropout(rate, noise_shape)(x, training=True)

    return drop


@contextlib.contextmanager
def symbolic_variables(keras: Any) -> Iterator[None]:
    """Meanwhile an operation of variables alone is recorded too, and not computed."""
    import sys

    from keras.src.backend.common import keras_tensor

    base = variable_type()
    plain = keras_tensor.any_symbolic_tensors

    def symbolic(args: Any = None, kwargs: Any = None) -> bool:
        if plain(args, kwargs):
            return True
        flat = keras.tree.flatten((args, kwargs))
        return any(isinstance(x, base) for x in flat)

    before: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, new: Any) -> None:
        before.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, new)

    for name, module in list(sys.modules.items()):
        if name.startswith("keras.src.") and "any_symbolic_tensors" in vars(module):
            put(module, "any_symbolic_tensors", symbolic)
    for short, op in _TWO.items():
        function = getattr(keras.ops, op)
        put(base, f"__{short}__", lambda a, b, f=function: f(a, b))
        put(base, f"__r{short}__", lambda a, b, f=function: f(b, a))
    put(base, "__neg__", lambda a: keras.ops.negative(a))
    put(base, "__getitem__", lambda a, key: keras.ops.get_item(a, key))
    put(base, "assign", _assigned)
    put(keras.Layer, "compute_output_spec", _spec_by_call(keras))
    for kind in _RUNS:
        put(getattr(keras.src.ops.core, kind), "symbolic_call", _run)
    random = keras.src.backend.random
    for name in _DRAWS:
        put(random, name, _drawn(vars(random)[name]))
    put(random, "dropout", _as_layer(keras))
    try:
        yield
    finally:
        for owner, name, old in reversed(before):
            if old is None:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
