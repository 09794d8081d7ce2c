"""Assignments to parts of a tensor, without a second trace of the model."""

import unittest
from typing import Callable

import pytest

torch = pytest.importorskip("torch")

from bakeoff_import.assignments import functional_assignments  # noqa: E402


class Module(torch.nn.Module):
    def __init__(self, body: Callable[..., "torch.Tensor"]) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: "torch.Tensor", y: "torch.Tensor") -> "torch.Tensor":
        return self.body(x, y)


def scaled_columns(x, y):  # as SAM scales its points
    z = x + 0
    z[..., 0] = z[..., 0] * 2
    z[..., 1] = z[..., 1] / y[..., 0]
    return z * 3


def parts_of_parts(x, y):
    z = torch.zeros_like(x)
    z[:, 1:3, 2] = y[:, :2, 0]
    z[:, ::2][:, 1] = 7
    z[:, -1] += y[:, 0]
    return z.sin(), z


def a_loop(x, y):
    out = torch.empty_like(x)
    for i in range(x.shape[1]):
        out[:, i] = x[:, i] + (out[:, i - 1] if i else y[:, 0])
    return out


def an_older_view(x, y):
    z = x + 0
    first = z[:, 0]
    z[:, 0] = y[:, 0]
    return first + z[:, 1]


def a_view_of_another_kind(x, y):
    z = x + 0
    flat = z.view(x.shape[0], -1)
    z[:, 0] = y[:, 0]
    return flat


def a_part_changed_in_place(x, y):
    z = x + 0
    z[:, 0].mul_(2)
    z[:, 1] = y[:, 0]
    return z


def an_input(x, y):
    x[:, 0] = y[:, 0]
    return x * 2


class Assignments(unittest.TestCase):
    def left(self, body: Callable[..., "torch.Tensor"]) -> int:
        """Copies that are left; the rewritten graph gives what forward does."""
        x, y = torch.randn(3, 4, 5), torch.rand(3, 4, 5) + 1
        batch = torch.export.Dim("N", min=2)
        program = torch.export.export(
            Module(body),
            (x.clone(), y),
            dynamic_shapes={"x": {0: batch}, "y": {0: batch}},
        )
        functional_assignments(program.graph_module)
        program.graph_module.graph.lint()
        program.graph_module.recompile()
        expected = body(x.clone(), y)
        given = [*program.constants.values(), x.clone(), y]
        found = program.graph_module(*given)[-1]
        expected = expected[-1] if isinstance(expected, tuple) else expected
        torch.testing.assert_close(found, expected)
        return sum(
            node.target is torch.ops.aten.copy_.default
            for node in program.graph_module.graph.nodes
        )

    def test_parts_become_new_values(self) -> None:
        for body in (scaled_columns, a_loop):
            with self.subTest(body.__name__):
                self.assertEqual(self.left(body), 0)

    def test_what_is_read_through_an_older_view_stays(self) -> None:
        for body in (an_older_view, a_view_of_another_kind, a_part_changed_in_place):
            with self.subTest(body.__name__):
                self.assertGreater(self.left(body), 0)
        self.assertGreater(self.left(an_input), 0)
        self.left(parts_of_parts)  # right, whatever is left
