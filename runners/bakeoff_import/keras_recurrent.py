"""The table's rows for recurrent layers of Keras, and those that wrap layers.

The IR's `lstm` and `gru` are the usual ones: from a state of zeros, with the usual
activations, and without the cell's own state as a result. Where a layer is one of these
it becomes the op, which every framework has a fast kernel for. Everything else is
unrolled step by step by the cell's formula: right for all of them, and the scripts roll
it up into a loop again. Keras and the IR order the gates differently, and Keras's
`reset_after` changes where the reset gate multiplies, so weights are permuted here and
nowhere else.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from bakeoff_import.keras_layers import activated, dropped_ones, joined
from bakeoff_import.keras_tensor import Held
from bakeoff_import.keras_walk import Call, Walk, layer
from bakeoff_import.problems import Unsupported
from bakeoff_import.steps import product, selected, split_evenly
from bakeoff_import.values import Layout, Value

LONGEST_UNROLLED = 64
# From what x gives at one step and the states the next states; the first is the output.
Step = Callable[[Walk, Any, Value, "list[Value]"], "list[Value]"]


def _name(function: Any) -> str:
    own = str(getattr(function, "__module__", "")).startswith("keras.")
    return getattr(function, "__name__", "") if own else ""


def _act(m: Walk, v: Value, function: Any) -> Value:
    return m.plain(activated(m, Held(v), function))


def _sum(m: Walk, a: Value, b: Value) -> Value:
    return m.plain(m.pointwise("add", a, b))


def _times(m: Walk, a: Value, b: Value) -> Value:
    return m.plain(m.pointwise("mul", a, b))


def _by(m: Walk, v: Value, weight: Any, bias: Any = None) -> Value:
    """v weight + bias; weight: I,O."""
    slots = [("weight", m.slot(weight, ("transpose", (1, 0))))]
    if bias is not None:
        slots.append(("bias", m.slot(bias)))
    layout = v.layout.sized(v.layout.rank - 1, int(weight.shape[1]))
    return m.made("linear", [v], layout, params=slots)


def _lstm_step(m: Walk, cell: Any, from_x: Value, state: list[Value]) -> list[Value]:
    h, c = state
    z = _sum(m, from_x, _by(m, h, cell.recurrent_kernel))
    i, f, g, o = split_evenly(m, z, 4)
    gate = cell.recurrent_activation
    kept = _times(m, _act(m, f, gate), c)
    c = _sum(m, kept, _times(m, _act(m, i, gate), _act(m, g, cell.activation)))
    return [_times(m, _act(m, o, gate), _act(m, c, cell.activation)), c]


def _gru_step(m: Walk, cell: Any, from_x: Value, state: list[Value]) -> list[Value]:
    """z, r = sigm(x + h), n = tanh(x_n + r h_n) or tanh(x_n + W (r h)),
    h = z h + (1 - z) n."""
    (h,) = state
    xz, xr, xn = split_evenly(m, from_x, 3)
    units = int(cell.units)
    gate = cell.recurrent_activation
    if cell.reset_after:
        inner = _by(m, h, cell.recurrent_kernel)
        if cell.use_bias:
            bias = m.variable(cell.bias)
            row = m.reshaped(m.sliced(bias, 0, 1, 2), Layout((3 * units,)))
            inner = _sum(m, inner, row)
        hz, hr, hn = split_evenly(m, inner, 3)
        z = _act(m, _sum(m, xz, hz), gate)
        r = _act(m, _sum(m, xr, hr), gate)
        hn = _times(m, r, hn)
    else:
        kernel = m.variable(cell.recurrent_kernel)
        first = product(m, h, m.sliced(kernel, 1, 0, 2 * units))
        hz, hr = split_evenly(m, first, 2)
        z = _act(m, _sum(m, xz, hz), gate)
        r = _act(m, _sum(m, xr, hr), gate)
        hn = product(m, _times(m, r, h), m.sliced(kernel, 1, 2 * units, 3 * units))
    n = _act(m, _sum(m, xn, hn), cell.activation)
    back = _times(m, z, m.plain(m.pointwise("sub", h, n)))
    return [_sum(m, n, back)]


def _simple_step(m: Walk, cell: Any, from_x: Value, state: list[Value]) -> list[Value]:
    total = _sum(m, from_x, _by(m, state[0], cell.recurrent_kernel))
    return [_act(m, total, cell.activation)]


_STEPS: dict[str, tuple[Step, int]] = {
    "LSTMCell": (_lstm_step, 2),
    "GRUCell": (_gru_step, 1),
    "SimpleRNNCell": (_simple_step, 1),
}


def _from_inputs(m: Walk, cell: Any, x: Value) -> Value:
    """What all steps' inputs give, at once."""
    kind = type(cell).__name__
    if kind != "GRUCell" or not cell.use_bias:
        return _by(m, x, cell.kernel, cell.bias if cell.use_bias else None)
    out = _by(m, x, cell.kernel)
    bias = m.variable(cell.bias)
    if cell.reset_after:
        bias = m.reshaped(m.sliced(bias, 0, 0, 1), Layout((3 * int(cell.units),)))
    return _sum(m, out, bias)


def _dropped(m: Walk, op: Any, cell: Any, x: Value, training: bool) -> Value:
    if float(getattr(cell, "recurrent_dropout", 0) or 0) > 0:
        raise Unsupported("drops its state (recurrent_dropout)", "dropout")
    rate = float(getattr(cell, "dropout", 0) or 0)
    if not m.drops(rate, training):
        return x
    if getattr(cell, "implementation", 2) == 1:
        raise Unsupported(
            "drops for each gate alone (implementation=1)", "implementation=2"
        )
    return m.plain(dropped_ones(m, Held(x), (None, 1, None), rate))


def recurrent(
    m: Walk,
    op: Any,
    arg: Any,
    training: bool,
    state: Optional[Sequence[Any]],
    in_places: bool = False,
) -> tuple[Value, list[Value]]:
    """The sequence in the order of its steps, or as its input lies, and the last
    states."""
    cell = op.cell
    kind = type(cell).__name__
    if kind not in _STEPS or not type(cell).__module__.startswith("keras."):
        raise Unsupported(f"runs the cell {kind}", "LSTM, GRU or SimpleRNN")
    x = m.rows_apart(arg, 3)
    x = _dropped(m, op, cell, x, training)
    if _has_op(m, op, state):
        out = _by_op(m, op, x)
        back = bool(op.go_backwards)
        last = [selected(m, out, 1, 0 if back else -1)]
        return (m.unary("flip", out, axes=[1]) if back and not in_places else out), last
    if op.go_backwards:
        x = m.unary("flip", x, axes=[1])
    out, last = _unrolled(m, cell, x, state)
    if op.go_backwards and in_places:
        out = m.unary("flip", out, axes=[1])
    return out, last


def _has_op(m: Walk, op: Any, state: Optional[Sequence[Any]]) -> bool:
    """Whether an op of the IR is the whole sequence: the usual activations, from zero,
    and no cell state is given."""
    cell = op.cell
    kind = type(cell).__name__
    if kind == "GRUCell":
        return (
            bool(cell.reset_after)
            and _name(cell.activation) == "tanh"
            and _name(cell.recurrent_activation) == "sigmoid"
            and not state
        )
    return (
        kind == "LSTMCell"
        and _name(cell.activation) == "tanh"
        and _name(cell.recurrent_activation) == "sigmoid"
        and not state
        and not op.return_state
    )


def _by_op(m: Walk, op: Any, x: Value) -> Value:
    cell, units = op.cell, int(op.cell.units)
    transposed: tuple[Any, ...] = (("transpose", (1, 0)),)
    lstm = type(cell).__name__ == "LSTMCell"
    # Keras's GRU has the gates z, r, n and both biases in one variable.
    places = [*range(units, 2 * units), *range(units), *range(2 * units, 3 * units)]
    turned = () if lstm else (("take", 0, tuple(places)),)
    slots = [
        ("weight_ih", m.slot(cell.kernel, *transposed, *turned)),
        ("weight_hh", m.slot(cell.recurrent_kernel, *transposed, *turned)),
    ]
    if cell.use_bias and lstm:
        slots.append(("bias", m.slot(cell.bias)))
    elif cell.use_bias:
        for row, slot in enumerate(("bias_ih", "bias_hh")):
            own = (("take", 0, row), *turned)
            slots.append((slot, m.slot(cell.bias, *own, part=f"{slot}_l0")))
    layout = x.layout.sized(2, units)
    kind, back = ("lstm" if lstm else "gru"), bool(op.go_backwards)
    return m.made(kind, [x], layout, params=slots, reverse=back)


def _unrolled(
    m: Walk, cell: Any, x: Value, state: Optional[Sequence[Any]]
) -> tuple[Value, list[Value]]:
    step, count = _STEPS[type(cell).__name__]
    steps, units = x.shape[1], int(cell.units)
    if steps > LONGEST_UNROLLED:
        raise Unsupported(
            f"has {steps} steps, and the IR's op lacks its state, biases or form",
            f"at most {LONGEST_UNROLLED} steps, or an LSTM from a zero state",
        )
    from_x = _from_inputs(m, cell, x)
    if state:
        now = [m.rows_apart(s, 2) for s in state]
    else:
        layout = Layout((1, units), 0)
        now = [m.expand(m.laid(np.zeros((1, units)), layout), layout)] * count
    outs = []
    for t in range(steps):
        now = step(m, cell, selected(m, from_x, 1, t), now)
        outs.append(now[0])
    return m.stack(outs, 1), now


@layer("LSTM", "GRU", "SimpleRNN", "RNN")
def rnn(m: Walk, op: Any, a: Call) -> Any:
    """`lstm`, `gru`; other cells, activations, a state given or taken: step by step"""
    state = a.get("initial_state")
    given = a.first
    if isinstance(given, (list, tuple)):
        given, state = given[0], list(given[1:])
    if state is not None and not isinstance(state, (list, tuple)):
        state = [state]
    out, last = recurrent(m, op, given, a.training, state)
    result = Held(out) if op.return_sequences else Held(_last_of(m, out, last))
    if op.return_state:
        return [result, *(Held(v) for v in last)]
    return result


def _last_of(m: Walk, out: Value, last: Sequence[Value]) -> Value:
    return last[0]


@layer("Bidirectional")
def bidirectional(m: Walk, op: Any, a: Call) -> Any:
    """both directions; `concat`, `add` or `mul`"""
    given = a.get("initial_state") or []
    half = len(given) // 2
    parts: list[Any] = []
    states: list[Any] = []
    for number, one in enumerate((op.forward_layer, op.backward_layer)):
        with m._place(one, m.graph.where):
            state = given[half:] if number else given[:half]
            out, last = recurrent(m, one, a.first, a.training, state, bool(number))
            parts.append(Held(out if op.return_sequences else last[0]))
            states += map(Held, last)
    merged = parts if op.merge_mode is None else [_both(m, op, parts)]
    if op.return_state:
        return [*merged, *states]
    return merged if op.merge_mode is None else merged[0]


def _both(m: Walk, op: Any, parts: list[Any]) -> Any:
    if op.merge_mode == "concat":
        return joined(m, parts, -1)
    if op.merge_mode == "ave":
        return m.pointwise("mul", m.pointwise("add", *parts), 0.5)
    return m.pointwise({"sum": "add", "mul": "mul"}[op.merge_mode], *parts)


@layer("TimeDistributed")
def time_distributed(m: Walk, op: Any, a: Call) -> Any:
    """its layer, at each step; at once where that computes each place alone"""
    inner = op.layer
    parts = inner.layers if type(inner).__name__ == "Sequential" else [inner]
    v = m.rows_apart(a.first)
    with m._place(inner, m.graph.where):
        if all(_of_places(part) for part in parts):
            return m.call(inner, (Held(v),), {}, a.training)
        if v.shape[1] > LONGEST_UNROLLED:
            raise Unsupported(
                f"calls '{inner.name}' at {v.shape[1]} steps",
                f"at most {LONGEST_UNROLLED} steps, or a layer over all of them, such "
                "as Conv3D with a kernel of 1 step",
            )
        outs = []
        for t in range(v.shape[1]):
            given = (Held(selected(m, v, 1, t)),)
            outs.append(m.value(m.call(inner, given, {}, a.training)))
    return Held(m.stack(outs, 1))


def _of_places(op: Any) -> bool:
    """Whether a layer computes the same for all steps at once."""
    if not type(op).__module__.startswith("keras."):
        return False
    kind = type(op).__name__
    if kind == "LayerNormalization":
        return op.axis in (-1, [-1])
    own = getattr(op, "noise_shape", None) is None
    return own and kind in ("Activation", "Dense", "Dropout", "Embedding", "ReLU")
