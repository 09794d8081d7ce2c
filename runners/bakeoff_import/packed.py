"""Packed sequences while a module is exported: an export cannot follow their numbers.

Rows stay padded, beside their lengths. An RNN reads each row from its first place on,
the reverse direction from its last one, and what it gives behind a row's end is 0. A
cell state is computed step by step, where it is read.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Iterator

import torch
from torch.nn.utils import rnn

from bakeoff_import.problems import ImportProblem


@dataclass(frozen=True)
class Packed:
    """Stands for a PackedSequence: N,T,F, and a length for each row."""

    padded: Any
    lengths: Any

    def __getattr__(self, name: str) -> Any:
        raise ImportProblem(
            f"forward reads '{name}' of a packed sequence",
            "give it to nn.LSTM, nn.GRU, nn.RNN and pad_packed_sequence alone",
        )

    @property
    def valid(self) -> Any:
        return torch.arange(self.padded.shape[1]) < self.lengths.unsqueeze(1)

    def turned(self, x: Any) -> Any:
        """The places of each row in reverse order; behind its end anything."""
        places = (self.lengths.unsqueeze(1) - 1 - torch.arange(x.shape[1])).clamp(min=0)
        return x.gather(1, places.unsqueeze(2).expand(-1, -1, x.shape[2]))


def _pack(input, lengths, batch_first=False, enforce_sorted=True):  # type: ignore
    import torch as own

    from bakeoff_import.packed import Packed as Stand

    padded = input if batch_first else input.transpose(0, 1)
    return Stand(padded, own.as_tensor(lengths, dtype=own.int64))


def _pad(  # type: ignore
    sequence, batch_first=False, padding_value=0.0, total_length=None
):
    from bakeoff_import.packed import Packed as Stand
    from bakeoff_import.packed import unpacked

    assert isinstance(sequence, Stand)
    return unpacked(sequence, batch_first, padding_value, total_length)


@torch.library.custom_op("bakeoff::pad_packed_sequence", mutates_args=())  # type: ignore
def as_long_as_rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """x: rows whose longest has every place, which the importer finds out."""
    return x.clone()


@as_long_as_rows.register_fake  # type: ignore
def _(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def unpacked(packed: Packed, batch_first: bool, value: float, total: Any) -> Any:
    """As pad_packed_sequence."""
    x = packed.padded
    if total is not None and total != x.shape[1]:
        raise ImportProblem(
            f"pad_packed_sequence makes rows of {total} places from {x.shape[1]}",
            "total_length of what was packed",
        )
    if total is None:
        x = as_long_as_rows(x, packed.lengths)
    if value:
        x = x.masked_fill(~packed.valid.unsqueeze(2), value)
    return (x if batch_first else x.transpose(0, 1)), packed.lengths


def _stepped(call: Any, x: Any, packed: Packed, state: Any) -> Any:
    """The last cell state of each row."""
    h, c = state
    for place in range(x.shape[1]):
        new_h, new_c = call(x[:, place], (h, c))
        inside = (packed.lengths > place).unsqueeze(1)
        h, c = torch.where(inside, new_h, h), torch.where(inside, new_c, c)
    return c


def _layer(rnn_: Any, packed: Packed, end: str, state: Any) -> tuple[Any, Any, Any]:
    """One layer in one direction: its outputs, last h and, of an LSTM, last c."""
    names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * bool(rnn_.bias)
    weights = [getattr(rnn_, f"{name}_{end}") for name in names]
    turns, lstm = end.endswith("_reverse"), rnn_.mode == "LSTM"
    x = packed.turned(packed.padded) if turns else packed.padded
    run = getattr(torch, rnn_.mode.lower())
    first = tuple(one.unsqueeze(0) for one in state) if lstm else state[0].unsqueeze(0)
    y = run(x, first, weights, rnn_.bias, 1, 0.0, False, False, True)[0]
    last = (packed.lengths - 1).view(-1, 1, 1).expand(-1, 1, y.shape[2])
    h, c = y.gather(1, last).squeeze(1), None
    if lstm:
        biases = weights[2:] or (None, None)

        def cell(one: Any, held: Any) -> Any:
            return torch.lstm_cell(one, held, *weights[:2], *biases)

        c = _stepped(cell, x, packed, state)
    y = packed.turned(y) if turns else y
    return y.masked_fill(~packed.valid.unsqueeze(2), 0.0), h, c


def _run(rnn_: Any, packed: Packed, hx: Any) -> Any:
    """What forward of an RNN gives for a packed sequence."""
    if getattr(rnn_, "proj_size", 0):
        raise ImportProblem("proj_size of a packed sequence", "a Linear behind it")
    if rnn_.dropout and rnn_.num_layers > 1 and rnn_.training:
        raise ImportProblem(
            "an RNN of packed sequences has dropout between its layers, which draws "
            "no number behind a row's end",
            "layers of their own, nn.Dropout on the padded rows between them",
        )
    count = 2 if rnn_.bidirectional else 1
    lstm = rnn_.mode == "LSTM"
    hs, cs = [], []
    for layer in range(rnn_.num_layers):
        parts = []
        for side in range(count):
            at = layer * count + side
            zeros = packed.padded.new_zeros(packed.padded.shape[0], rnn_.hidden_size)
            given = hx if hx is None or lstm else (hx,)
            state = (zeros, zeros) if given is None else tuple(s[at] for s in given)
            end = f"l{layer}{'_reverse' * side}"
            y, h, c = _layer(rnn_, packed, end, state)
            parts.append(y)
            hs.append(h)
            cs.append(c)
        out = torch.cat(parts, 2) if count > 1 else parts[0]
        packed = Packed(out, packed.lengths)
    h = torch.stack(hs)
    return packed, ((h, torch.stack(cs)) if lstm else h)


@contextlib.contextmanager
def padded_sequences() -> Iterator[None]:
    """Rows that are packed meanwhile stay padded. Their code objects are exchanged, so
    modules that imported the functions by name call ours as well."""
    functions = ((rnn.pack_padded_sequence, _pack), (rnn.pad_packed_sequence, _pad))
    codes = [function.__code__ for function, _ in functions]
    kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
    forwards = [kind.forward for kind in kinds]

    def of(original: Any) -> Any:
        def forward(self: Any, input: Any, hx: Any = None) -> Any:
            if isinstance(input, Packed):
                return _run(self, input, hx)
            return original(self, input, hx)

        return forward

    for function, ours in functions:
        function.__code__ = ours.__code__
    for kind, forward in zip(kinds, forwards):
        kind.forward = of(forward)
    try:
        yield
    finally:
        for (function, _), code in zip(functions, codes):
            function.__code__ = code
        for kind, forward in zip(kinds, forwards):
            kind.forward = forward
