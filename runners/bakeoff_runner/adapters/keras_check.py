"""What `bakeoff check` looks for in Keras scripts."""

from __future__ import annotations

import ast
from typing import Any, Callable, ContextManager, Optional

from bakeoff_runner.source import (
    Function,
    Scope,
    calls_in,
    last_name,
    methods_in,
    owner_name,
    replaced,
    required_of,
    returned_by,
)
from bakeoff_runner.source_check import Check, Refused


class Source(Check):
    def run(self) -> None:
        scope, model = self._model()
        compiled = "compile" in methods_in(self.script.tree)
        if not self.has("build_model"):
            self.needs(
                "build_model()",
                self._build_model(scope, model),
                "def build_model(): the lines that make the model, and return it",
            )
        if not self.has("compile_model") and not self._compiled(scope, model):
            self.needs(
                "compile_model(model)",
                self._compile(),
                "def compile_model(model): model.compile(...)"
                if compiled
                else "def compile_model(model): model.compile(optimizer=..., loss=...)",
            )
        self.takes("build_model", 0)
        self.takes("compile_model", 1)
        self.takes("fit", 5)

    def _model(self) -> tuple[Scope, str]:
        """The name on which ``fit`` or ``compile`` is called, and where."""
        for wanted in ("fit", "compile"):
            for scope, call in self.script.calls():
                if last_name(call.func) == wanted and owner_name(call.func):
                    return scope, owner_name(call.func)
        return None, ""

    def _makers(self) -> list[Function]:
        """Functions without required arguments that return a model."""
        models = {"Model", "Sequential", *self.script.classes}
        return [
            function
            for function in self.script.functions.values()
            if not required_of(function)
            and returned_by(function)
            and any(last_name(call.func) in models for call in calls_in(function))
        ]

    def _build_model(self, scope: Scope, name: str) -> Optional[str]:
        if scope is None and self.has(name):
            return f"def build_model(): return {name}"
        value = self.script.value_of(scope, name) if name else None
        if isinstance(value, ast.Call):
            function = self.script.functions.get(last_name(value.func))
            if function is not None and not value.args and not value.keywords:
                return f"build_model = {function.name}"
            text = self.script.portable(value, scope)
            if text is not None:
                return f"def build_model(): return {text}"
        makers = self._makers()
        if len(makers) == 1:
            return f"build_model = {makers[0].name}"
        made = self.script.made("Model", "Sequential")
        return f"def build_model(): return {made}" if made else None

    def _compiled(self, scope: Scope, name: str) -> bool:
        """Whether what build_model gives is compiled already."""
        value = self.script.value_of(scope, name) if name else None
        maker = None
        if isinstance(value, ast.Call):
            maker = self.script.functions.get(last_name(value.func))
        maker = self.script.functions.get("build_model", maker)
        if maker is not None:
            if "compile" in methods_in(maker):
                return True
            given = returned_by(maker)
            name = next((n.id for n in given if isinstance(n, ast.Name)), "")
        return name in self.script.names and any(
            isinstance(n, ast.Call)
            and last_name(n.func) == "compile"
            and owner_name(n.func) == name
            for n in self.script.at_import()
        )

    def _compile(self) -> Optional[str]:
        for scope, call in self.script.calls():
            if last_name(call.func) != "compile" or not owner_name(call.func):
                continue
            model = ast.Name("model", ast.Load())
            moved = replaced(call, owner_name(call.func), model)
            text = self.script.portable(moved, scope, "model")
            if text is not None:
                return f"def compile_model(model): {text}"
        return None


def parts(script: Any, calling: Callable[[str], ContextManager[None]]) -> None:
    with calling("build_model()"):
        model = script.build_model()
    if not hasattr(model, "compile"):
        raise Refused(
            f"build_model() gives {type(model).__name__}", "return the keras.Model"
        )
    if hasattr(script, "compile_model"):
        with calling("compile_model(model)"):
            script.compile_model(model)
    if getattr(model, "optimizer", None) is None:
        raise Refused(
            "the model is not compiled", "def compile_model(model): model.compile(...)"
        )
