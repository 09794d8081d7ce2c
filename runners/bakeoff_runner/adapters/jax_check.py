"""What `bakeoff check` looks for in JAX scripts."""

from __future__ import annotations

import ast
from typing import Any, Callable, ContextManager, Optional

from bakeoff_runner.source import (
    Function,
    calls_in,
    last_name,
    parameters_of,
    returned_by,
)
from bakeoff_runner.source_check import Check


class Source(Check):
    def run(self) -> None:
        loss, step = self._loss(), self._step()
        if not self.has("loss_fn"):
            self.needs(
                "loss_fn(params, *inputs)",
                f"loss_fn = {loss}" if loss else None,
                "def loss_fn(params, *inputs): return the mean loss of the batch",
            )
        if not self.has("forward"):
            forward = self._forward(self.script.functions.get(loss or "loss_fn"))
            self.needs(
                "forward(params, *inputs)",
                f"forward = {forward}" if forward else None,
                "def forward(params, *inputs): return what the loss is computed from",
            )
        if not self.has("train_step"):
            self.needs(
                "train_step(params, opt_state, *batch)",
                f"train_step = {step}" if step else None,
                "a function train_step(params, opt_state, *batch) that returns params, "
                "opt_state and loss",
            )
        if not self.has("init_params") and not self.has("init_state"):
            self.needs(
                "init_params(key)",
                None,
                "def init_params(key): return a dict of arrays",
            )
        if not self.has("make_optimizer") and len(self._optimizers()) != 1:
            self.needs(
                "an optimizer",
                None,
                "OPTIMIZER = optax....: in the module, and used by train_step",
            )

    def _optimizers(self) -> list[str]:
        return [
            name
            for scope, name, value in self.script.assigned
            if scope is None
            and isinstance(value, ast.Call)
            and ast.unparse(value.func).startswith("optax.")
        ]

    def _loss(self) -> Optional[str]:
        """`loss` of jax.value_and_grad(loss)."""
        for _, call in self.script.calls():
            if last_name(call.func) in ("value_and_grad", "grad") and call.args:
                name = last_name(call.args[0])
                if name in self.script.functions:
                    return name
        return None

    def _forward(self, loss: Optional[Function]) -> Optional[str]:
        """The function that the loss calls with its own first argument."""
        if loss is None or not parameters_of(loss):
            return None
        for call in calls_in(loss):
            name, first = last_name(call.func), next(iter(call.args), None)
            mine = isinstance(first, ast.Name) and first.id == parameters_of(loss)[0]
            if mine and name in self.script.functions:
                return name
        return None

    def _step(self) -> Optional[str]:
        """A function of params, opt_state and a batch that gives three values."""
        for function in self.script.functions.values():
            given = returned_by(function)
            gives = [len(v.elts) for v in given if isinstance(v, ast.Tuple)]
            called = {last_name(call.func) for call in calls_in(function)}
            if {"update", "apply_updates"} <= called and gives == [3]:
                return function.name if len(parameters_of(function)) >= 3 else None
        return None


def parts(script: Any, calling: Callable[[str], ContextManager[None]]) -> None:
    import jax

    init = getattr(script, "init_params", None) or script.init_state
    with calling(f"{init.__name__}(key)"):
        init(jax.random.key(0))
