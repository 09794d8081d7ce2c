"""From a Keras model to IR text.

A functional model is a graph already, and one with a `call` of its own is traced layer
by layer with symbolic tensors; no framework's exporter is asked, so that the import is
the same on every backend. As with torch the model is mapped in training and in
inference mode, and the two may differ by dropout and batch norm alone. Keras puts
channels last and often ends in the activation that its loss takes in: pictures come as
N,C,H,W where they reach an op of the IR that has axes, and the last activation moves
into the loss.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np

import bakeoff_import.keras_layers
import bakeoff_import.keras_ops
import bakeoff_import.keras_recurrent  # noqa: F401
from bakeoff_import.graph import Graph, Names, Node, ir_word
from bakeoff_import.keras_setup import notes as noted
from bakeoff_import.keras_tensor import FIRST, PLAIN, Held
from bakeoff_import.keras_walk import Blocked, Walk, graph_of, in_order, masked
from bakeoff_import.modes import IN_BOTH_MODES, same_graphs
from bakeoff_import.problems import ImportProblem, Refused, Unsupported, first_line
from bakeoff_import.values import Layout, N, Shape, Value
from bakeoff_import.writing import InputSpec

# Losses of Keras: that of the IR; the activation of the last layer that it takes in.
_LOSSES = {
    "mean_squared_error": ("mse", ""),
    "mse": ("mse", ""),
    "mean_absolute_error": ("l1", ""),
    "mae": ("l1", ""),
    "sparse_categorical_crossentropy": ("softmax_cross_entropy", "softmax"),
    "categorical_crossentropy": ("softmax_cross_entropy", "softmax"),
    "binary_crossentropy": ("bce_with_logits", "sigmoid"),
    "ctc": ("ctc", ""),
}
KINDS = {"f32": "float64", "i32": "int32", "bool": "bool"}  # of inputs, in Keras
_GIVE = "--loss softmax_cross_entropy or mse"
_TAKES_IN = {"softmax_cross_entropy": "softmax", "bce_with_logits": "sigmoid"}


@dataclass
class Exported:
    """The import, before its proof."""

    walk: Walk
    nodes: list[Node]
    output: Held
    inputs: dict[str, tuple[str, Shape]]  # IR name -> dtype, IR shape
    loss: str
    still: set[int]  # variables that train in Keras, and that no gradient reaches
    notes: list[str] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        return self.walk.graph


class Importer:
    """One model, its inputs, and what is exported of it."""

    def __init__(
        self,
        keras: Any,
        model: Any,
        specs: Sequence[InputSpec],
        folder: str,
        output: str = "",
        loss: str = "",
        ops: Sequence[str] = (),
        loss_if_none: str = "",
    ) -> None:
        self.keras = keras
        self.model = model
        self.folder = folder
        self.output = output
        self.ops = list(ops)
        self.loss_if_none = loss_if_none
        self.notes: list[str] = []
        self.graph = graph_of(keras, model)
        self.specs = self._specs(specs)
        self.names = self._names()
        self.first = [True] * len(self.specs)  # pictures lie N,C,H,W in the IR
        if self.graph is None:
            self._build()
        self._check_variables()
        self.loss, self.stripped = self._loss(loss)
        self.exported: Optional[Exported] = None
        self.parts: list[Held] = []  # the outputs that the loss compares

    # -- what the model is

    def _specs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """The inputs' types: the user's, else the model's own."""
        if self.graph is None:
            if not given:
                raise ImportProblem(
                    "the model does not say what its inputs are",
                    "give each --input its type, such as 'f32[8,32,32,3]'",
                )
            return list(given)
        known = self.graph.inputs
        if given and len(given) != len(known):
            raise ImportProblem(
                f"the model has {len(known)} inputs, and --input names {len(given)}",
                "give one --input for each: " + ", ".join(x.name for x in known),
            )
        byname = {spec.name: spec for spec in given if spec.name}
        for name in byname:
            if name not in [x.name for x in known]:
                raise ImportProblem(
                    f"the model has no input '{name}'",
                    "it has " + ", ".join(x.name for x in known),
                )
        rest = iter(spec for spec in given if not spec.name)
        specs = []
        for x in known:
            spec = byname.get(x.name) or next(rest, None)
            whole = "int" in str(x.dtype) or self._ids(x)
            dtype = "bool" if str(x.dtype) == "bool" else "i32" if whole else "f32"
            if spec is None:
                if any(s is None for s in x.shape[1:]):
                    raise ImportProblem(
                        f"the sizes of the input '{x.name}' are open: {x.shape}",
                        f"give them: --input '{x.name}={dtype}[32,...]'",
                    )
                spec = InputSpec(x.name, dtype, (32, *x.shape[1:]))
            fits = len(spec.shape) == len(x.shape) and all(
                a in (None, b) for a, b in zip(x.shape[1:], spec.shape[1:])
            )
            if not fits:
                raise ImportProblem(
                    f"--input {list(spec.shape)} does not fit '{x.name}', which takes "
                    f"{['N', *x.shape[1:]]}",
                    "sizes are those of the Keras model, the batch first",
                )
            specs.append(InputSpec(x.name, spec.dtype, spec.shape))
        return specs

    def _ids(self, x: Any) -> bool:
        """Whether tables alone read an input: Keras lets it be one of floats."""
        nodes = [
            n for n in in_order(self.graph) if any(x is y for y in n.input_tensors)
        ]
        return all(isinstance(n.operation, self.keras.layers.Embedding) for n in nodes)

    def _names(self) -> list[str]:
        unique = Names()
        wanted = [spec.name or f"x{i + 1}" for i, spec in enumerate(self.specs)]
        if len(wanted) == 1 and not self.specs[0].name:
            wanted = ["x"]
        wanted = [
            "x" if w.startswith(("input_layer", "keras_tensor")) else w for w in wanted
        ]
        words = [ir_word(w) for w in wanted]
        return [unique.unique(w if w[0].isalpha() else f"x_{w}") for w in words]

    def arguments(self, tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The tensors as the model's `call` takes them: in one argument, a list or a
        dictionary; or in one for each."""
        if self.graph is not None:
            struct = getattr(self.graph, "_inputs_struct", None)
            return [self.keras.tree.pack_sequence_as(struct, list(tensors))], {}
        if len(tensors) == 1:
            return [tensors[0]], {}
        taken = [
            p
            for p in inspect.signature(self.model.call).parameters.values()
            if p.name not in ("training", "mask")
        ]
        named = {s.name: t for s, t in zip(self.specs, tensors) if s.name}
        by_name = named.keys() & {p.name for p in taken}
        if not by_name and len(named) == len(tensors):
            return [named], {}
        several = [
            p for p in taken if p.default is p.empty or p.annotation is not p.empty
        ]
        if (
            by_name
            or len(several) > 1
            or any(p.kind == p.VAR_POSITIONAL for p in taken)
        ):
            return [t for s, t in zip(self.specs, tensors) if not s.name], named
        return [list(tensors)], {}

    def _build(self) -> None:
        """A model with a call of its own gets its variables from one call."""
        from bakeoff_import.origin import user_place

        zeros = [np.zeros((2, *s.shape[1:]), KINDS[s.dtype]) for s in self.specs]
        try:
            args, kwargs = self.arguments(zeros)
            self.model(*args, **kwargs)
        except Exception as error:
            raise ImportProblem(
                f"the model cannot be called with these inputs: {first_line(error)}",
                "give each --input the type and sizes that call takes, the batch first",
                user_place(error, self.folder),
            ) from error
        for layer in self.model._flatten_layers():
            if type(layer).__name__ == "Normalization":
                self._with_statistics(layer)

    def _with_statistics(self, layer: Any) -> None:
        """Keras builds a model with a call of its own without numbers, and what a layer
        is given beside its variables has none then."""
        ops, shape = self.keras.ops, getattr(layer, "_broadcast_shape", None)
        for key in ("mean", "variance"):
            given = getattr(layer, f"input_{key}", None)
            if given is not None and shape is not None:
                array = np.broadcast_to(np.asarray(given, "float64"), shape)
                setattr(layer, key, ops.convert_to_tensor(array, dtype="float64"))

    def _check_variables(self) -> None:
        for variable in self.model.variables:
            kind = str(variable.dtype)
            if kind in ("float32", "float16", "bfloat16"):
                raise ImportProblem(
                    f"'{variable.path}' stays {kind}",
                    "leave the dtype to keras.config.floatx()",
                )
        for variable in self.model.trainable_variables:
            if (limit := getattr(variable, "constraint", None)) is not None:
                raise ImportProblem(
                    f"'{variable.path}' is put back within {type(limit).__name__} "
                    "after every step, which no recipe does",
                    "build its layer without this constraint",
                )
        weighted = [
            layer
            for layer in self.model._flatten_layers()
            if any(
                "regularizer" in key and value is not None
                for key, value in vars(layer).items()
            )
        ]
        if weighted:
            self.notes.append(
                "penalties of regularizers are no part of the loss: the recipe has "
                "weight_decay"
            )

    # -- the loss

    def _loss(self, asked: str) -> tuple[str, Any]:
        """The IR's loss, and the layer whose last activation it takes in."""
        loss, taken = asked, _TAKES_IN.get(asked.partition(",")[0], "")
        for own in ("train_step", "compute_loss"):
            module = str(getattr(type(self.model), own).__module__)
            if module.startswith(("keras.", "keras_hub.")):
                continue
            if not asked:
                raise ImportProblem(
                    f"the model trains by a {own} of its own", f"give {_GIVE}"
                )
            self.notes.append(f"the model's own {own} is left out: the loss is {asked}")
        if not asked:
            loss, taken = self._compiled()
        last = self._last_activation()
        if not taken or last is None or last[1] != taken:
            return loss, None
        self.notes.append(
            f"the {taken} of '{last[0].name}' is part of the loss: the workload "
            "predicts what it takes"
        )
        return loss, last[0]

    def _compiled(self) -> tuple[str, str]:
        given = getattr(self.model, "loss", None)
        known = _GIVE
        if given is None:
            compiled = getattr(self.model, "compiled", False)
            said = "is compiled without a loss" if compiled else "was never compiled"
            if not self.loss_if_none:
                raise ImportProblem(
                    f"the model {said}: an import needs a loss", f"give {known}"
                )
            self.notes.append(
                f"the model {said}, and no --loss is named: the scripts train with "
                f"{self.loss_if_none}"
            )
            return self.loss_if_none, ""
        # A loss may be called as it likes, and a function of the user's own too.
        function = getattr(given, "fn", given)
        name = function if isinstance(function, str) else _said(function)
        found = _LOSSES.get(name)
        if found is None:
            raise ImportProblem(
                f"the model's loss '{name}' has no counterpart", f"give {known}"
            )
        loss, taken = found
        settings = given.get_config() if hasattr(given, "get_config") else {}
        loss += self._loss_attributes(name, loss, settings, known)
        if settings.get("from_logits"):
            return loss, ""
        last = self._last_activation()
        if taken and (last is None or last[1] != taken):
            raise ImportProblem(
                f"the model's loss '{name}' takes probabilities, and the model does "
                f"not end in {taken}",
                f"from_logits=True, a last layer with activation='{taken}', or {known}",
            )
        if name == "categorical_crossentropy":
            self.notes.append("targets are numbers of classes, no longer one-hot rows")
        if name == "ctc":
            self.notes.append("rows of labels are padded with -1, no longer with 0")
        return loss, taken

    def _loss_attributes(
        self, name: str, loss: str, settings: Mapping[str, Any], known: str
    ) -> str:
        """What the IR's loss is told beside its name: ",label_smoothing=0.1"."""
        said = ""
        classes = loss == "softmax_cross_entropy"
        weights = getattr(
            getattr(self.model, "_compile_loss", None), "_user_loss_weights", None
        )
        if weights or settings.get("axis", -1) != -1:
            what = "has a weight (loss_weights)" if weights else "has another axis"
            raise ImportProblem(f"the model's loss '{name}' {what}", f"give {known}")
        if smooth := settings.get("label_smoothing"):
            if not classes:
                raise ImportProblem(
                    f"the model's loss '{name}' smooths its labels", f"give {known}"
                )
            said += f",label_smoothing={smooth!r}"
        if (ignored := settings.get("ignore_class")) is not None:
            said += f",ignore_index={ignored}"
        reduction = settings.get("reduction") or "sum_over_batch_size"
        means = ("auto", "mean", "sum_over_batch_size", "mean_with_sample_weight")
        # Others: the sum of means of the last axis.
        if reduction == "sum" and (classes or loss == "ctc"):
            said += ",reduction=sum"
        elif reduction not in means:
            raise ImportProblem(
                f"the model's loss '{name}' is reduced by '{reduction}'",
                f"give {known}",
            )
        return said

    def _last_activation(self) -> Any:
        """The layer that gives the only output, and its activation's name."""
        if self.graph is None or len(self.graph.outputs) != 1:
            return None
        layer = self.graph.outputs[0]._keras_history.operation
        called = [node.operation for node in in_order(self.graph)]
        layers = [op for op in called if isinstance(op, self.keras.Layer)]
        if sum(layer is part for op in layers for part in op._flatten_layers()) != 1:
            return None  # what it computes elsewhere stays
        if type(layer).__name__ == "Softmax" and layer.axis == -1:
            return layer, "softmax"
        name = getattr(getattr(layer, "activation", None), "__name__", "")
        return (layer, name) if name in _TAKES_IN.values() else None

    @contextlib.contextmanager
    def without_last(self) -> Iterator[None]:
        """Meanwhile the last activation passes its input on."""
        layer = self.stripped
        if layer is None:
            yield
            return
        key = "activation" if hasattr(layer, "activation") else "call"
        put: Any = self.keras.activations.linear if key == "activation" else _same
        before = getattr(layer, key)
        object.__setattr__(layer, key, put)
        try:
            yield
        finally:
            object.__setattr__(layer, key, before)

    # -- export

    def _walked(
        self, training: bool, dropout: bool, modes: Optional[Sequence[bool]] = None
    ) -> tuple[Walk, Held]:
        walk = Walk(
            self.keras, self.folder, self.model, training, dropout, modes, self.ops
        )
        held = []
        for i, (name, spec) in enumerate(zip(self.names, self.specs)):
            sizes, form = spec.shape[1:], PLAIN
            if self.moved(i):
                sizes, form = (sizes[-1], *sizes[:-1]), FIRST
            walk.graph.input_shapes[name] = (N, *sizes)
            walk.graph.names.unique(name)
            layout = Layout((1, *sizes), 0)
            truth = spec.dtype == "bool"
            value = (
                walk.truth(name, layout) if truth else Value(name, layout, spec.dtype)
            )
            held.append(Held(value, form))
        with self.without_last():
            outputs = self._outputs(walk, held, training)
        if walk.refusals:
            raise Refused(walk.refusals)
        return walk, self._as_output(walk, outputs)

    def _outputs(self, walk: Walk, held: Sequence[Held], training: bool) -> Any:
        if self.graph is not None:
            outputs = walk.run(self.graph, held, training)
            if not walk.refusals and any(masked(x) for x in self.graph.outputs):
                raise ImportProblem(
                    "the output carries a mask: Keras's losses leave out places by it",
                    "make no mask within the model",
                )
            return self._named(outputs, self.graph)
        walk._overrides = False
        try:
            args, kwargs = self.arguments(held)
            made = walk.traced(self.model, args, kwargs, training)
        except Blocked:
            return {}
        except Unsupported as why:
            walk.refuse(self.model, str(why), why.remedy)
            return {}
        flat = self.keras.tree.flatten_with_path(made)
        return {".".join(str(p) for p in path): x for path, x in flat}

    def _named(self, outputs: Sequence[Any], graph: Any) -> dict[str, Any]:
        """By their places or keys, and by the layer that gives them."""
        struct = getattr(graph, "_outputs_struct", None)
        packed = self.keras.tree.pack_sequence_as(struct, list(range(len(outputs))))
        paths = self.keras.tree.flatten_with_path(packed)
        return {
            (".".join(str(p) for p in path) or "0"): outputs[int(i)]
            for path, i in paths
        }

    def chosen(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs that the loss compares."""
        if not self.output and len(outputs) != 1:
            raise ImportProblem(
                f"the model gives {len(outputs)} outputs: {', '.join(outputs)}",
                f"name the one that the loss compares: --output "
                f"{next(iter(outputs), '0')}; to predict several, their names with "
                "commas between them",
            )
        names = list(outputs)
        if self.output:
            one = self.output in outputs
            names = [self.output] if one else self.output.split(",")
        for name in names:
            if name not in outputs:
                raise ImportProblem(
                    f"the model has no output '{name}'", f"it has {', '.join(outputs)}"
                )
            if names.count(name) > 1:
                raise ImportProblem(
                    f"the output '{name}' is named twice", "name each output once"
                )
        return {name: outputs[name] for name in names}

    def _as_output(self, walk: Walk, outputs: dict[str, Any]) -> Held:
        """What the loss compares; several outputs side by side."""
        chosen = self.chosen(outputs)
        several = len(chosen) > 1
        self.parts = [self._part(walk, one, several) for one in chosen.values()]
        if len(self.parts) == 1:
            return self.parts[0]
        values = [held.value for held in self.parts]
        shapes = [(N, *(v.ir[1:] or (1,))) for v in values]
        inputs = [
            walk.graph.reshape(v.name, v.ir, shape) for v, shape in zip(values, shapes)
        ]
        width = sum(math.prod(shape[1:]) for shape in shapes)
        with walk.graph.called("outputs"):
            joined = walk.graph.node("join", inputs, (N, width))
        if walk.training and walk.dropout:  # else dropout gives what it takes
            walk.graph.name_outputs(inputs, list(chosen))
        return Held(Value(joined, Layout((1, width), 0)))

    def _part(self, walk: Walk, chosen: Any, several: bool) -> Held:
        """An output; of several, sequences keep Keras's order."""
        if not isinstance(chosen, Held) or chosen.n is None:
            raise ImportProblem("the output does not depend on an input")
        if chosen.dtype != "f32":
            raise ImportProblem(
                "the output holds integers or truth values", "give a tensor of floats"
            )
        try:
            classes = self.loss.partition(",")[0] == "softmax_cross_entropy"
            sequence = several and chosen.rank < 4
            if classes or sequence or chosen.form != FIRST:
                return Held(walk.batch_first(walk.plain(chosen)))
            return Held(walk.batch_first(chosen.value), FIRST)
        except Unsupported as why:
            raise ImportProblem(
                f"the output cannot be compared by a loss: it {why}",
                "give one tensor of floats whose first axis is the batch",
            ) from why

    def run(self) -> Exported:
        """Exports in both modes. Raises ImportProblem, or Refused with the list."""
        walk, output = self._walked(True, True)
        if self._plain_inputs(walk, output):
            walk, output = self._walked(True, True)
        still, calm = self._walked(True, False)
        quiet, other = self._walked(False, False, still.norm_modes)
        same_graphs(
            (still.graph, calm.value.name), (quiet.graph, other.value.name),
            IN_BOTH_MODES,
            "only dropout and batch norm may differ by the mode: remove the branch on "
            "training",
        )  # fmt: skip
        graph = walk.graph
        unmoved = graph.freeze_untrained([output.value.name], walk.running)
        graph.declare_as_read([output.value.name])
        graph.hoist()
        graph.repeat_for_rows([output.value.name])
        nodes = graph.live([output.value.name])
        inputs = {
            name: ("f32" if spec.dtype == "f32" else "i32", graph.input_shapes[name])
            for name, spec in zip(self.names, self.specs)
        }
        notes = [*noted, *self.notes]
        if unmoved:
            shown = unmoved[:8] + [f"{len(unmoved) - 8} more"] * (len(unmoved) > 8)
            notes.append(
                f"no gradient reaches these, they are frozen: {', '.join(shown)}"
            )
        ids = {id(walk.reads[n].variable) for n in unmoved if n in walk.reads}
        self.exported = Exported(walk, nodes, output, inputs, self.loss, ids, notes)
        return self.exported

    def moved(self, i: int) -> bool:
        """Whether an input has its channels behind N in the workload."""
        spec = self.specs[i]
        return self.first[i] and spec.dtype == "f32" and len(spec.shape) > 2

    def _plain_inputs(self, walk: Walk, output: Held) -> bool:
        """Pictures that are read in Keras's order alone come in that order."""
        changed = False
        live = walk.graph.live([output.value.name])
        for i, name in enumerate(self.names):
            if not self.moved(i):
                continue
            readers = [n for n in live if name in n.inputs]
            turned = all(n.op in ("transpose", "reshape", "flatten") for n in readers)
            if readers and turned:
                self.first[i] = False
                changed = True
        return changed


def _said(function: Any) -> str:
    """The name of a loss of Keras; of one of the user's own, what it is."""
    own = str(getattr(function, "__module__", "keras.")).startswith("keras.")
    name = getattr(function, "__name__", type(function).__name__)
    return str(name) if own else f"{name}, which is not Keras's"


def _same(inputs: Any, *args: Any, **kwargs: Any) -> Any:
    return inputs
