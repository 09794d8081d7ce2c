"""What `bakeoff check` looks for in torch scripts.

A script of the user's own rarely has a function `train_step`: it has a loop, or a
function that trains an epoch, under any name. The parts are found by what is done to
them: a model is what an optimizer was given the parameters of, a loss is what
`backward` is called on, a loader is what a training loop goes through. Names decide
nothing. A part that cannot be told for certain is asked for, never guessed, as a wrong
guess would be raced.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Callable, ContextManager, Optional, Union

from bakeoff_runner.source import (
    Function,
    Scope,
    Script,
    calls_in,
    free_names,
    last_name,
    methods_in,
    owner_name,
    parameters_of,
    replaced,
    required_of,
    returned_by,
)
from bakeoff_runner.source_check import Check, Refused

_LOOP_NOT_CALLED = (
    "your own loop is not called: what is raced is zero_grad(), loss, backward() and "
    "step() on each batch. A function of its own that takes model, optimizer and "
    "batches would be raced as it is"
)
_LEFT_OUT = {"autocast", "clip_grad_norm_", "clip_grad_value_", "unscale_"}


class Source(Check):
    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._known_roles: dict[str, dict[str, str]] = {}  # by function

    def run(self) -> None:
        scope, optimizer, model = self._optimizer()
        if not self.has("make_model"):
            line = self._make_model(scope, model)
            self.needs(
                "make_model()",
                line,
                "def make_model(): return the nn.Module, on its device",
            )
        if not self.has("make_optimizer"):
            self.needs(
                "make_optimizer(model)",
                optimizer,
                "def make_optimizer(model): return the optimizer of model.parameters()",
            )
        if not any(map(self.has, ("train_step", "train_epoch", "loss_fn"))):
            self.needs(
                "train_epoch(model, optimizer, batches)",
                self._train_function() or self._loss(),
                "def train_epoch(model, optimizer, batches): one step on each "
                "batch; or loss_fn(output, target)",
            )
        self.takes("make_model", 0)
        self.takes("make_optimizer", 1)
        self.takes("train_epoch", 3)

    def _optimizer(self) -> tuple[Scope, Optional[str], str]:
        """Where it is made, the line that makes it, and the name of its model."""
        for function in self.script.functions.values():
            trained = [_trained_by(value) for value in returned_by(function)]
            if not trained or required_of(function) != [trained[0]]:
                continue
            line = f"make_optimizer = {function.name}"
            for scope, call in self.script.calls():
                if last_name(call.func) == function.name and call.args:
                    return scope, line, ast.unparse(call.args[0])
            return None, line, ""
        for scope, _, value in self.script.assigned:
            model = _trained_by(value)
            if not model:
                continue
            moved = replaced(value, model, ast.Name("model", ast.Load()))
            text = self.script.portable(moved, scope, "model")
            made = f"def make_optimizer(model): return {text}" if text else None
            return scope, made, model
        return None, None, ""

    def _make_model(self, scope: Scope, name: str) -> Optional[str]:
        value = self.script.value_of(scope, name) if name else None
        if isinstance(value, ast.Call):
            function = self.script.functions.get(last_name(value.func))
            if function is not None and not value.args and not value.keywords:
                return f"make_model = {function.name}"
        if value is not None:
            text = self.script.portable(value, scope)
            if text is not None:
                return f"def make_model(): return {text}"
        made = self.script.made("Module")
        return f"def make_model(): return {made}" if made else None

    def _train_function(self) -> Optional[str]:
        """The script's own function that trains an epoch or a step, called."""
        training = [f for f in self.script.functions.values() if self.script.trains(f)]
        for function in sorted(training, key=self._loader, reverse=True):
            line = self._call(function)
            if line is not None:
                return line
        return None

    def _call(self, function: Function) -> Optional[str]:
        roles = self._roles(function)
        if not {"model", "optimizer"} <= set(roles.values()):
            return None
        required = required_of(function)
        loader = self._loader(function)
        each = ""
        head = "train_epoch(model, optimizer, batches)"
        if loader:
            roles[loader] = "batches"
        elif any(map(self.script.trains, _loops(function))):
            return None
        else:  # one step
            called = {last_name(call.func) for call in calls_in(function)}
            batch = [p for p in required if p not in roles and p not in called]
            roles.update({p: p for p in batch})
            if not batch:
                return None
            if len(batch) > 1 and _returns_loss(function):
                head = f"train_step(model, optimizer, {', '.join(batch)})"
            else:
                each = f" for {', '.join(batch)} in batches]"
        arguments = []
        for parameter in parameters_of(function):
            given = self._argument(function, parameter, roles)
            if parameter in required:
                if given is None:
                    return None
                arguments.append(given)
            elif given is not None:
                arguments.append(f"{parameter}={given}")
        call = f"{function.name}({', '.join(arguments)})"
        return f"def {head}: return {'[' if each else ''}{call}{each}"

    def _argument(
        self, function: Function, name: str, roles: dict[str, str]
    ) -> Optional[str]:
        """What a parameter of the training function gets; None: its default."""
        if name in roles:
            return roles[name]
        passes = (n.iter for n in ast.walk(function) if isinstance(n, ast.For))
        if any(_is_range(over) and name in free_names(over) for over in passes):
            return "1"
        if name not in required_of(function):
            return None
        for scope, value in self.script.given(function, name):
            text = self.script.portable(value, scope)
            if text is not None:
                return text
        return {"device": '"cpu"', "epoch": "0"}.get(name)

    def _roles(self, function: Function) -> dict[str, str]:
        """Which parameters are the model and the optimizer, by what is done to them."""
        if function.name in self._known_roles:
            return dict(self._known_roles[function.name])
        parameters = parameters_of(function)
        roles = self._known_roles[function.name] = {}  # while its calls are followed
        calls = list(calls_in(function))
        for call in calls:
            owner, name = owner_name(call.func), last_name(call.func)
            if owner in parameters and name == "zero_grad":
                roles.setdefault(owner, "optimizer")
            elif owner in parameters and name in ("train", "eval", "parameters"):
                roles.setdefault(owner, "model")
            inner = self.script.functions.get(name)
            if inner is not None:
                its = self._roles(inner)
                given = list(zip(parameters_of(inner), call.args))
                given += [(k.arg, k.value) for k in call.keywords if k.arg]
                for its_name, value in given:
                    mine = last_name(value)
                    if its_name in its and mine in parameters:
                        roles.setdefault(mine, its[its_name])
        for call in calls:
            owner = owner_name(call.func)
            steps = last_name(call.func) == "step" and owner in parameters
            if steps and "optimizer" not in roles.values():
                roles[owner] = "optimizer"
        called = [c.func.id for c in calls if isinstance(c.func, ast.Name)]
        models = [
            name
            for name in called
            if name in parameters
            and name not in roles
            and not re.search("loss|crit", name.lower())
        ]
        if models and "model" not in roles.values():
            roles[models[0]] = "model"
        return dict(roles)

    def _loader(self, function: Function) -> str:
        """The parameter over which it trains in a loop; empty: none."""
        for loop in _loops(function):
            if not isinstance(loop, ast.For) or _is_range(loop.iter):
                continue
            for name in free_names(loop.iter):
                if name in parameters_of(function) and self.script.trains(loop):
                    return name
        return ""

    def _loss(self) -> Optional[str]:
        """The function that makes what ``backward`` is called on."""
        for scope in (*self.script.functions.values(), None):
            nodes = list(self.script.within(scope))
            calls = [n for n in nodes if isinstance(n, ast.Call)]
            lost = [
                owner_name(c.func) for c in calls if last_name(c.func) == "backward"
            ]
            for where, name, call in self.script.assigned:
                if where is not scope or name not in lost:
                    continue
                if not isinstance(call, ast.Call) or len(call.args) != 2:
                    continue
                function = self.script.portable(call.func, scope)
                if function is None:
                    continue
                left = methods_in(scope or self.script.tree) & _LEFT_OUT
                self.notes.append(
                    _LOOP_NOT_CALLED
                    + "".join(f"; {name}() is left out" for name in sorted(left))
                )
                if not call.keywords:
                    return f"loss_fn = {function}"
                more = ", ".join(map(ast.unparse, call.keywords))
                called = f"{function}(output, target, {more})"
                return f"def loss_fn(output, target): return {called}"
        return None


def _trained_by(value: Optional[ast.expr]) -> str:
    """`net` of optim.SGD(net.parameters(), lr=0.1)."""
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    first = value.args[0]
    if isinstance(first, ast.Call) and last_name(first.func) == "parameters":
        return owner_name(first.func)
    return ""


def _is_range(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) in ("range", "trange")


def _loops(function: Function) -> list[Union[ast.For, ast.While]]:
    return [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While))]


def _returns_loss(function: Function) -> bool:
    """Whether it gives the tensor that it goes backward from: loss or loss.detach()."""
    calls = [call for call in calls_in(function) if last_name(call.func) == "backward"]
    losses = {owner_name(call.func) for call in calls}
    returned = returned_by(function)
    return bool(returned) and all(
        (isinstance(value, ast.Name) and value.id in losses)
        or (
            isinstance(value, ast.Call)
            and last_name(value.func) == "detach"
            and owner_name(value.func) in losses
        )
        for value in returned
    )


def parts(script: Any, calling: Callable[[str], ContextManager[None]]) -> None:
    import torch

    with calling("make_model()"):
        model = script.make_model()
    if not isinstance(model, torch.nn.Module):
        raise Refused(
            f"make_model() gives {type(model).__name__}", "return the nn.Module"
        )
    with calling("make_optimizer(model)"):
        optimizer = script.make_optimizer(model)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Refused(
            f"make_optimizer(model) gives {type(optimizer).__name__}",
            "return the torch.optim.Optimizer",
        )
    known = {id(p) for p in model.parameters()}
    mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not mine <= known:
        raise Refused(
            "make_optimizer(model) trains parameters of another model",
            "use the model that it is given, not one of the module",
        )
