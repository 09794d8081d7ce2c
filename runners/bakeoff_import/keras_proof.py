"""What a Keras model computes in float64, for the program to compare with.

The program draws weights and inputs and sends them; this side only computes, so that
neither side can agree with itself. Outputs, gradients of a random projection of them
and new running statistics are all taken from the model as Keras runs it, by the backend
that is installed: a gradient has three spellings here, one for each backend. Dropout
cannot be compared number by number. It is compared by how many numbers each rate draws,
which shows a mask that is shared by rows.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from bakeoff_import.keras_export import KINDS, Importer
from bakeoff_import.keras_tensor import FIRST, FLAT, PLAIN, Held
from bakeoff_import.keras_walk import to_numpy
from bakeoff_import.problems import ImportProblem
from bakeoff_import.values import N


def set_weights(importer: Importer, weights: Mapping[str, Any]) -> None:
    """Puts the IR's parameters where the model keeps them."""
    assert importer.exported is not None
    reads = importer.exported.walk.reads
    for name, tensor in weights.items():
        read = reads.get(name)
        if read is not None:
            old = to_numpy(read.variable)
            read.variable.assign(read.form.undo(tensor, old))


def _to_ir(array: Any, held: Held, ops: Any = np) -> Any:
    """A tensor of the model in the axes of the IR. `ops`: NumPy, or Keras's."""
    if held.form == FIRST:
        array = ops.moveaxis(array, -1, 1)
    elif held.form == FLAT:
        c, *space = held.picture
        array = ops.moveaxis(ops.reshape(array, (-1, *space, c)), -1, 1)
    elif held.form != PLAIN:
        array = ops.moveaxis(array, -1, 1)[:, :, None, :]
    layout = held.value.layout
    n = layout.n
    if n is None:
        return array
    rows = (
        array.shape[n] // (layout.before * layout.after)
        if held.form == PLAIN
        else array.shape[0]
    )
    if held.form != PLAIN:
        return ops.reshape(array, (rows, *held.value.ir[1:]))
    apart = (layout.before, rows, layout.after)
    split = ops.reshape(array, (*array.shape[:n], *apart, *array.shape[n + 1 :]))
    first = ops.moveaxis(split, n + 1, 0)
    shape = layout.ir(held.value.spread)
    return ops.reshape(first[:1] if held.value.spread else first, (-1, *shape[1:]))


def _from_ir(importer: Importer, inputs: Mapping[str, Any]) -> Any:
    """The inputs as the model's call takes them."""
    tensors = []
    for i, (name, spec) in enumerate(zip(importer.names, importer.specs)):
        array = inputs[name]
        if importer.moved(i):
            array = np.moveaxis(array, 1, -1)
        array = np.ascontiguousarray(array).reshape(-1, *spec.shape[1:])
        kind = KINDS[spec.dtype]
        tensors.append(importer.keras.ops.convert_to_tensor(array, dtype=kind))
    return importer.arguments(tensors)


@contextlib.contextmanager
def without_dropout(importer: Importer) -> Iterator[None]:
    """Dropout passes its input on."""
    random = importer.keras.src.backend.random
    plain, random.dropout = random.dropout, lambda x, *args, **kwargs: x
    try:
        yield
    finally:
        random.dropout = plain


def _call(importer: Importer, given: Any, training: bool) -> Any:
    args, kwargs = given
    made = importer.model(*args, **kwargs, training=training)
    flat = importer.keras.tree.flatten_with_path(made)
    outputs = {(".".join(str(p) for p in path) or "0"): x for path, x in flat}
    chosen = list(importer.chosen(outputs).values())
    for output, held in zip(chosen, importer.parts):
        sizes = [s for i, s in enumerate(output.shape) if i != held.n]
        if sizes != [s for i, s in enumerate(held.shape) if i != held.n]:
            raise ImportProblem(
                f"the model gives {tuple(output.shape)}, the import {held.symbolic}",
                "this is a defect of bakeoff, please report it with the model",
            )
    if len(chosen) == 1:
        return chosen[0]
    ops = importer.keras.ops  # side by side, as the IR has them
    rows = [_to_ir(x, held, ops) for x, held in zip(chosen, importer.parts)]
    return ops.concatenate([ops.reshape(x, (x.shape[0], -1)) for x in rows], 1)


def compute(
    importer: Importer,
    train: bool,
    inputs: Mapping[str, Any],
    projection: Any = None,
) -> dict[str, Any]:
    """Output, and in training the gradients of sum(output * projection) and the new
    running statistics."""
    exported = importer.exported
    assert exported is not None
    model = importer.model
    state = [(v, to_numpy(v)) for v in model.non_trainable_variables]
    given = _from_ir(importer, inputs)
    answer: dict[str, Any] = {}
    try:
        with importer.without_last(), without_dropout(importer):
            if projection is None:
                output = _call(importer, given, train)
                answer["output"] = _to_ir(to_numpy(output), exported.output)
            else:
                keep = _projection(projection, exported.output)
                output, gradients = _differentiated(importer, given, keep)
                answer["output"] = _to_ir(output, exported.output)
                answer.update(_gradients(importer, gradients))
        for name in exported.walk.running:
            read = exported.walk.reads[name]
            answer[f"running:{name}"] = read.form.apply(to_numpy(read.variable))
        if projection is not None:
            check_dropout(importer, given, len(next(iter(inputs.values()))))
    finally:
        for variable, array in state:
            variable.assign(array)
    return answer


def check_dropout(importer: Importer, given: Any, rows: int) -> None:
    """Compares how many random numbers dropout of each rate draws with what it draws in
    the model: a mask that rows share would show. Raises ImportProblem."""
    exported, random = importer.exported, importer.keras.src.backend.random
    assert exported is not None
    ours: Counter[float] = Counter()
    theirs: Counter[float] = Counter()
    shapes = {name: shape for name, (_, shape) in exported.inputs.items()}
    for node in exported.nodes:
        shapes[node.output] = node.shape
        if mask := node.mask(shapes):
            shape = [rows if s == N else s for s in mask[1]]
            ours[round(mask[0], 9)] += math.prod(shape)
    plain = random.dropout

    def counted(x: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
        noise = noise_shape or x.shape
        shape = [x.shape[i] if s is None else s for i, s in enumerate(noise)]
        theirs[round(float(rate), 9)] += math.prod(shape)
        return x

    random.dropout = counted
    try:
        _call(importer, given, True)
    finally:
        random.dropout = plain
    theirs += Counter()  # without those of rate 0
    if ours != theirs:
        raise ImportProblem(
            f"dropout draws {dict(theirs)} random numbers for {rows} rows in the "
            f"model, {dict(ours)} in the import",
            "remove dropout that the output does not depend on; else this is a defect "
            "of bakeoff, please report it with the model",
        )


def _projection(array: Any, held: Held) -> Any:
    return np.moveaxis(array, 1, -1) if held.form == FIRST else array


def _differentiated(importer: Importer, given: Any, projection: Any) -> Any:
    """The output, and the gradient for every trained variable by its identity."""
    backend: Callable[[Importer, Any, Any], Any] = {
        "tensorflow": _by_tensorflow,
        "jax": _by_jax,
        "torch": _by_torch,
    }[importer.keras.backend.backend()]
    return backend(importer, given, projection)


def _by_tensorflow(importer: Importer, given: Any, projection: Any) -> Any:
    import tensorflow as tf

    variables = importer.model.trainable_variables
    with tf.GradientTape() as tape:
        output = _call(importer, given, True)
        total = tf.reduce_sum(output * tf.reshape(projection, tf.shape(output)))
    raw = tape.gradient(total, [v.value for v in variables])
    dense = [None if g is None else to_numpy(tf.convert_to_tensor(g)) for g in raw]
    return to_numpy(output), {id(v): g for v, g in zip(variables, dense)}


def _by_torch(importer: Importer, given: Any, projection: Any) -> Any:
    import torch

    from bakeoff_import.float64 import WithoutDropout

    variables = importer.model.trainable_variables
    with WithoutDropout(), torch.enable_grad():
        output = _call(importer, given, True)
        wanted = torch.as_tensor(np.ascontiguousarray(projection)).reshape(output.shape)
        total = (output * wanted).sum()
        values = [v.value for v in variables]
        raw = [None] * len(values)
        if values and total.requires_grad:
            raw = torch.autograd.grad(total, values, allow_unused=True)
    found = {
        id(v): None if g is None else g.detach().numpy() for v, g in zip(variables, raw)
    }
    return output.detach().numpy(), found


def _by_jax(importer: Importer, given: Any, projection: Any) -> Any:
    import jax

    model, keras = importer.model, importer.keras
    trained = [v.value for v in model.trainable_variables]

    def total(values: Any) -> Any:
        held = list(zip(model.trainable_variables, values))
        with keras.StatelessScope(state_mapping=held) as scope:
            output = _call(importer, given, True)
            moved = map(scope.get_current_value, model.non_trainable_variables)
        state = [
            v.value if new is None else new
            for v, new in zip(model.non_trainable_variables, moved)
        ]
        return (output * projection.reshape(output.shape)).sum(), (output, state)

    gradient = jax.jit(jax.grad(total, has_aux=True))
    raw, (output, state) = gradient(trained)
    for variable, value in zip(model.non_trainable_variables, state):
        variable.assign(value)
    variables = model.trainable_variables
    return np.asarray(output), {id(v): np.asarray(g) for v, g in zip(variables, raw)}


def _gradients(importer: Importer, gradients: Mapping[int, Any]) -> dict[str, Any]:
    exported = importer.exported
    assert exported is not None
    found: dict[str, Any] = {}
    read_ids = set()
    for name, read in exported.walk.reads.items():
        if exported.graph.parameters[name].frozen or id(read.variable) not in gradients:
            continue
        read_ids.add(id(read.variable))
        raw = gradients[id(read.variable)]
        raw = np.zeros(tuple(read.variable.shape)) if raw is None else raw
        shape = exported.graph.parameters[name].tensor.shape
        found[f"gradient:{name}"] = read.form.apply(raw).reshape(shape)
    for variable in importer.model.trainable_variables:
        raw = gradients.get(id(variable))
        if id(variable) not in read_ids and raw is not None and np.any(raw != 0):
            raise ImportProblem(
                f"'{variable.path}' has a gradient in the model, and the import does "
                "not train it",
                "its layer must read it by keras.ops, not as a number",
            )
    return found


def trace(importer: Importer, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The model's values by the names of the IR, those of its own graph alone."""
    exported = importer.exported
    assert exported is not None
    if importer.graph is None:
        return {}
    named = list(exported.walk.named.items())
    keras = importer.keras
    function = keras.Function(importer.graph.inputs, [x for _, (x, _) in named])
    given = keras.tree.flatten(_from_ir(importer, inputs))
    state = [(v, to_numpy(v)) for v in importer.model.non_trainable_variables]
    found: dict[str, Any] = {}
    try:
        with importer.without_last(), without_dropout(importer):
            made = function._run_through_graph(
                given, operation_fn=lambda op: _in_training(op)
            )
    finally:
        for variable, array in state:
            variable.assign(array)
    for (name, (_, held)), tensor in zip(named, keras.tree.flatten(made)):
        array = np.asarray(to_numpy(tensor), dtype=np.float64)
        found[name] = _to_ir(array, held)
    return found


def _in_training(op: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if "training" in getattr(op, "_call_context_args", {}):
            kwargs["training"] = True
        return op(*args, **kwargs)

    return call
