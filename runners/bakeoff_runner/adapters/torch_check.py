"""What `bakeoff check` looks for in torch scripts."""

from __future__ import annotations

import ast
import re
from typing import Any, Callable, ContextManager, Optional

from bakeoff_runner.source import (
    Function,
    Scope,
    calls_in,
    free_names,
    last_name,
    methods_in,
    owner_name,
    parameters_of,
    replaced,
    required_of,
    returned_by,
    trains,
)
from bakeoff_runner.source_check import Check, Refused

_LOOP_NOT_CALLED = (
    "your own loop is not called: what is raced is zero_grad(), loss, backward() and "
    "step() on each batch. A function of its own that takes model, optimizer and "
    "batches would be raced as it is"
)


class Source(Check):
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
        for kind in reversed(self.script.classes.values()):
            bases = [last_name(base) for base in kind.bases]
            made = [n for n in kind.body if isinstance(n, ast.FunctionDef)]
            init = next((n for n in made if n.name == "__init__"), None)
            if "Module" in bases and (init is None or len(required_of(init)) == 1):
                return f"def make_model(): return {kind.name}()"
        return None

    def _train_function(self) -> Optional[str]:
        """The script's own function that trains an epoch or a step, called."""
        for function in self.script.functions.values():
            methods = methods_in(function)
            if not {"backward", "step"} <= methods:
                continue
            line = self._call(function)
            if line is not None:
                return line
        return None

    def _call(self, function: Function) -> Optional[str]:
        roles = _roles(function)
        if "optimizer" not in roles.values() or "model" not in roles.values():
            return None
        required = required_of(function)
        loops = [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While))]
        loader = _loader(function)
        if loader:
            roles[loader] = "batches"
            head = "train_epoch(model, optimizer, batches)"
        else:
            rest = [p for p in required if p not in roles]
            roles.update({p: p for p in rest})
            if not rest or not returned_by(function) or any(map(trains, loops)):
                return None
            head = f"train_step(model, optimizer, {', '.join(rest)})"
        arguments = []
        for parameter in parameters_of(function):
            given = self._argument(function, parameter, roles)
            if parameter in required:
                if given is None:
                    return None
                arguments.append(given)
            elif given is not None:
                arguments.append(f"{parameter}={given}")
        return f"def {head}: return {function.name}({', '.join(arguments)})"

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
        index = parameters_of(function).index(name)
        for scope, call in self.script.calls():
            if last_name(call.func) != function.name:
                continue
            given = call.args[index] if index < len(call.args) else None
            given = next((k.value for k in call.keywords if k.arg == name), given)
            if given is not None:
                text = self.script.portable(given, scope)
                if text is not None:
                    return text
        return {"device": '"cpu"', "epoch": "0"}.get(name)

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
                self.notes.append(_LOOP_NOT_CALLED)
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


def _roles(function: Function) -> dict[str, str]:
    """Which parameters are the model and the optimizer, by what is done to them."""
    parameters = parameters_of(function)
    roles: dict[str, str] = {}
    called: list[str] = []
    calls = list(calls_in(function))
    for call in calls:
        owner, name = owner_name(call.func), last_name(call.func)
        if owner in parameters and name == "zero_grad":
            roles.setdefault(owner, "optimizer")
        elif owner in parameters and name in ("train", "eval", "parameters"):
            roles.setdefault(owner, "model")
        elif name in parameters and isinstance(call.func, ast.Name):
            called.append(name)
    for call in calls:
        owner = owner_name(call.func)
        if "optimizer" in roles.values() or last_name(call.func) != "step":
            continue
        if owner in parameters:
            roles[owner] = "optimizer"
    if "model" not in roles.values():
        for name in called:
            if name not in roles and not re.search("loss|crit", name.lower()):
                roles[name] = "model"
                break
    return roles


def _loader(function: Function) -> str:
    """The parameter over which the function trains in a loop; empty: none."""
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For) or _is_range(loop.iter) or not trains(loop):
            continue
        for name in free_names(loop.iter):
            if name in parameters_of(function):
                return name
    return ""


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
