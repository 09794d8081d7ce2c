"""What the origin computes in float64, for the program to compare the import with.

The program draws weights and inputs; this side computes with the user's own module, and
does not know what is expected. Gradients are those of a random projection of all
outputs, so that an error in any of them moves nearly every parameter's gradient. Masks
of dropout cannot be compared by value: their numbers are counted, for every rate, at
two batch sizes, since a mask that rows share draws as many at both. Inputs by which a
mask leaves an attention no key at all prove nothing (frameworks differ there), and are
drawn anew.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import Any, Iterable, Mapping, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bakeoff_import.exporting import Importer, arguments, drawn
from bakeoff_import.float64 import (
    Random,
    WithoutDropout,
    float64_by_default,
    gradients_of,
    random_of,
    real_numbers,
)
from bakeoff_import.origin import user_place
from bakeoff_import.problems import ImportProblem
from bakeoff_import.values import Layout, N, Value

_DEFECT = (
    "nothing was written; this is a defect of bakeoff, please report it with the model"
)


def set_weights(importer: Importer, weights: Iterable[tuple[str, Any]]) -> None:
    """Puts the IR's parameters, arrays by name, where the origin keeps them."""
    assert importer.exported is not None
    tensors = importer.tensors()
    with torch.no_grad():
        for name, array in weights:
            targets = importer.exported.graph.parameters[name].targets
            rest = torch.from_numpy(array)
            for key in targets[1:]:  # their sum is the IR's
                rest = rest - tensors[key]
            if targets:
                held = real_numbers(tensors[targets[0]])
                held.copy_(rest.reshape(held.shape))
                if targets[0] in importer.padding:
                    held[importer.padding[targets[0]]] = 0


def _as_ir(tensor: Any, value: Value) -> Any:
    """A tensor of the origin in the axes of the IR."""
    layout: Layout = value.layout
    n = layout.n
    if n is None:
        return tensor
    rows = tensor.shape[n] // (layout.before * layout.after)
    split = tensor.reshape(
        *tensor.shape[:n], layout.before, rows, layout.after, *tensor.shape[n + 1 :]
    )
    first = split.movedim(n + 1, 0)
    shape = layout.ir(value.spread)
    if value.spread:
        return first[:1].reshape(shape)
    return first.reshape(rows, *shape[1:])


def _call(importer: Importer, inputs: Mapping[str, Any]) -> Any:
    made = _run(importer, [inputs[name] for name in importer.names])
    exported = importer.exported
    assert exported is not None
    return _as_ir(made, exported.output)


def _run(importer: Importer, tensors: Sequence[Any]) -> Any:
    args, kwargs = arguments(importer.module, importer.specs, tensors)
    try:
        return importer.module(*args, **kwargs)
    except Exception as error:
        lines = f"{type(error).__name__}: {error}".splitlines()
        raise ImportProblem(
            f"the model cannot compute with drawn inputs: {lines[0]}",
            "they are drawn from a normal distribution, integers within the bounds of "
            "their tables",
            user_place(error, importer.folder),
        ) from error


class _Keys(TorchDispatchMode):  # type: ignore[misc]
    """Looks for softmaxes of a row that is -inf throughout: of no key at all."""

    def __init__(self) -> None:
        super().__init__()
        self.none_left = False

    def _look(self, scores: Any, axis: int) -> None:
        gone = scores == -math.inf if scores.is_floating_point() else ~scores.bool()
        self.none_left = self.none_left or bool(gone.all(axis).any())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func._schema.name in ("aten::_safe_softmax", "aten::_softmax"):
            self._look(args[0], args[1])
        mask = (kwargs or {}).get("attn_mask")
        if mask is not None and func._schema.name.startswith("aten::_scaled_dot"):
            self._look(mask, -1)
        return func(*args, **(kwargs or {}))


def compute(
    importer: Importer,
    train: bool,
    inputs: Mapping[str, Any],
    projection: Any = None,
) -> dict[str, Any]:
    """Output, and in training the gradients of sum(output * projection) and the new
    running statistics. Nothing: a mask leaves an attention no key."""
    exported = importer.exported
    assert exported is not None
    importer.module.train(train)
    tensors = importer.tensors()
    before = {
        key: t.detach().clone() for key, t in tensors.items() if not t.requires_grad
    }
    answer: dict[str, Any] = {}
    try:
        with contextlib.ExitStack() as stack:
            if train:
                stack.enter_context(WithoutDropout())
            else:
                stack.enter_context(torch.no_grad())
            keys = stack.enter_context(_Keys())
            output = _call(importer, inputs)
            if not train and not torch.allclose(
                output, _call(importer, inputs), 1e-9, 1e-12, equal_nan=True
            ):
                raise ImportProblem(
                    "the model computes something else when it is called again with "
                    "the same inputs",
                    "keep nothing from call to call: give a state as an input, and "
                    "count steps outside of forward",
                )
            if keys.none_left:
                return {}
            answer["output"] = output.detach()
            if projection is not None:
                answer.update(_gradients(importer, (output * projection).sum()))
        for name in exported.running:
            key = exported.graph.parameters[name].targets[0]
            answer[f"running:{name}"] = tensors[key].detach().clone()
    finally:
        with torch.no_grad():
            for key, tensor in before.items():
                tensors[key].copy_(tensor)
    return answer


def _gradients(importer: Importer, projected: Any) -> dict[str, Any]:
    exported = importer.exported
    assert exported is not None
    tensors = importer.tensors()
    wanted = {
        name: [tensors[key] for key in p.targets]
        for name, p in exported.graph.parameters.items()
        if p.targets and not p.frozen and tensors[p.targets[0]].requires_grad
    }
    known = {
        importer.keys[key]
        for name in wanted
        for key in exported.graph.parameters[name].targets
    }
    others = {
        key: t
        for key, t in tensors.items()
        if t.requires_grad and importer.keys[key] == key and key not in known
    }
    flat = [t for ts in wanted.values() for t in ts] + list(others.values())
    if not projected.requires_grad:
        grads: list[Any] = [None] * len(flat)
    else:
        try:
            grads = gradients_of(projected, flat)
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise ImportProblem(
                f"torch cannot compute the model's gradients: {first}",
                "the model must train in torch first",
            ) from error
    grads = [g.to_dense() if g is not None and g.is_sparse else g for g in grads]
    for key, grad in zip(others, grads[len(flat) - len(others) :]):
        if grad is not None and bool(grad.any()):
            raise ImportProblem(
                f"the model trains '{key}', and the import would not",
                _DEFECT,
            )
    found, at = {}, iter(grads)
    for name, ts in wanted.items():
        own = [next(at) for _ in ts]
        full = [torch.zeros_like(t) if g is None else g for t, g in zip(ts, own)]
        for other in full[1:]:
            if not torch.allclose(other, full[0], rtol=1e-9, atol=1e-300):
                raise ImportProblem(
                    f"gradients of tensors that '{name}' stands for differ"
                )
        shape = exported.graph.parameters[name].tensor.shape
        found[f"gradient:{name}"] = real_numbers(full[0].detach()).reshape(shape)
    return found


class _Masks(TorchDispatchMode):  # type: ignore[misc]
    """Counts the random numbers of every draw, by the rate of dropout that it is."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[tuple[float, int]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::")
        found = random_of(name, args, kwargs)
        turned = any(getattr(one, "bakeoff_random", Random()).true for one in args[:2])
        made = func(*args, **(kwargs or {}))
        if name == "native_dropout" and args[2]:
            self.draws.append((round(float(args[1]), 9), args[0].numel()))
        elif found is not None and found.true is not None and not turned:
            self.draws.append((round(1 - found.true, 9), made.numel()))
        if found is not None:
            made.bakeoff_random = found
        return made


def check_dropout(importer: Importer) -> None:
    """Compares how many random numbers each dropout draws, at two batch sizes, with
    what the module draws: a mask that rows share would show. Raises ImportProblem."""
    exported = importer.exported
    assert exported is not None
    if importer.selects:
        return  # the model draws for the selected rows, the import for all
    shapes = {name: shape for name, (_, shape) in exported.inputs.items()}
    shapes.update((node.output, node.shape) for node in exported.nodes)
    ours = [(node, mask) for node in exported.nodes if (mask := node.mask(shapes))]
    importer.module.train()
    seen: list[list[tuple[float, int]]] = []
    tensors = importer.tensors()
    before = {
        key: t.detach().clone() for key, t in tensors.items() if not t.requires_grad
    }
    for rows in (2, 3):
        given = [drawn(spec, rows) for spec in importer.specs]
        with torch.no_grad(), _Masks() as masks:
            _run(importer, given)
        seen.append([draw for draw in masks.draws if 0 < draw[0] < 1])
    with torch.no_grad():
        for key, tensor in before.items():
            tensors[key].copy_(tensor)
    left = Counter(zip(*seen))
    for node, (rate, shape) in ours:
        sizes = [math.prod(rows if s == N else s for s in shape) for rows in (2, 3)]
        draw = tuple((round(rate, 9), size) for size in sizes)
        if not left[draw] and node.output in exported.mapper.by_hand:
            draw = tuple((round(1 - rate, 9), size) for size in sizes)
        if not left[draw]:
            raise ImportProblem(
                f"a dropout of rate {rate:g} would draw {sizes[0]} numbers for 2 "
                f"rows and {sizes[1]} for 3, and the model draws no such mask",
                _DEFECT,
                node.where,
            )
        left[draw] -= 1
    if left.total() and not exported.mapper.dead_dropout:
        (rate, size), _ = next(iter(left.elements()))
        raise ImportProblem(
            f"the model draws a mask of rate {rate:g}, of {size} numbers for 2 "
            "rows, that the import lacks",
            _DEFECT,
        )


def trace(importer: Importer, train: bool, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The origin's values by the names of the IR, as far as the IR has them."""
    exported = importer.exported
    assert exported is not None
    named, program = exported.mapper.named, exported.program
    found: dict[str, Any] = {}

    class Watched(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, n: Any) -> Any:
            made = super().run_node(n)
            value = named.get(n.name)
            if isinstance(made, torch.Tensor) and value and value.name not in found:
                found[value.name] = _as_ir(made.detach().clone(), value).double()
            return made

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            name = getattr(getattr(target, "_schema", None), "name", "")
            if name.rstrip("_").endswith("dropout") and name.startswith("aten::"):
                return args[0]
            if name == "aten::scaled_dot_product_attention":
                args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
                kwargs = {key: v for key, v in kwargs.items() if key != "dropout_p"}
            return super().call_function(target, args, kwargs)

    tensors = importer.tensors()
    args: list[Any] = []
    names = iter(importer.names_in_order())
    for spec in program.graph_signature.input_specs:
        kind = spec.kind.name
        if kind in ("PARAMETER", "BUFFER"):
            tensor = tensors[importer.keys.get(spec.target, spec.target)]
            args.append(tensor.detach().clone())
        elif kind == "CONSTANT_TENSOR":
            args.append(program.constants[spec.target].clone())
        else:
            args.append(inputs[next(names)[0]])
    with torch.no_grad(), WithoutDropout(), float64_by_default():
        Watched(program.graph_module).run(*args)
    return found
