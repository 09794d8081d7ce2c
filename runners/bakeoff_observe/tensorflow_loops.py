"""Loops that TensorFlow runs op by op: where they are, and the switch `graph`.

The switch makes a graph of the user's function that computes the gradients; where it
cannot, since the loop goes round in the same function or the function cannot be
traced, of the model that Keras calls and of its optimizer.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable

from bakeoff_observe.functions import (
    Loops,
    Outer,
    Step,
    number_of,
    plain_step,
    replace,
    words_of,
)

if TYPE_CHECKING:
    from bakeoff_observe.tensorflow_hooks import TensorFlowHooks

# What a graph would draw once and for all.
_DRAWS = ("next", "randint", "choice", "permutation", "sample", "shuffle")


def is_loss(x: Any) -> bool:
    shape = getattr(x, "shape", None)
    floating = bool(getattr(getattr(x, "dtype", None), "is_floating", False))
    return floating and shape is not None and shape.rank == 0


class EagerLoops:
    def __init__(self, hooks: TensorFlowHooks) -> None:
        self.hooks = hooks
        self.loop: dict[str, Any] = {}  # the first that is found
        self.throws = "graph" in hooks.process.switches
        self.places = Loops(self.found)

    def watch(self) -> None:
        tape, observer = self.hooks.tf.GradientTape, self.hooks.observer
        enter, eager = tape.__enter__, self.hooks.context.executing_eagerly
        hooks, places = self.hooks, self.places

        @functools.wraps(enter)
        def entered(tape: Any) -> Any:
            if hooks.current is None and not observer.inside and eager():
                observer.count("tapes")
                if places.left:
                    places.enter(sys._getframe(1))
            return enter(tape)

        tape.__enter__ = entered

    def found(self, code: CodeType, line: int, same: bool) -> None:
        function = "" if same or not plain_step(code, _DRAWS) else code.co_name
        if not self.loop:
            models = any(getattr(h, "optimizers", []) for h in self.hooks.process.hooks)
            self.loop = {
                "function": function,
                "line": number_of(
                    code.co_filename, code.co_firstlineno if function else line
                ),
                "scope": "function" if function else "model" if models else "",
            }
        if not self.throws:
            return
        if not function or not replace(code, self.graph):
            self.graph_model()

    def graph(
        self, original: Callable[..., Any], undo: Callable[[], None]
    ) -> Callable[..., Any]:
        """The function in a graph; as it was, and the model in one, if that fails."""
        hooks, observer = self.hooks, self.hooks.observer
        eager, step = hooks.context.executing_eagerly, Step()
        graph, outer = self.traced(original, step), Outer(original, _is_array)
        taken = outer.now()
        seen: dict[str, Any] = {"trains": False, "loss": None}

        def called(*args: Any, **kwargs: Any) -> Any:
            if hooks.current is not None or observer.inside or not eager():
                return original(*args, **kwargs)
            hooks.current = seen
            try:
                if any(a is not b for a, b in zip(taken, outer.now())):
                    raise ValueError("it takes arrays that are not among its arguments")
                more, named = hooks.tensor_values(seen, args, kwargs, "graph")
                result, losses = graph(*more, **named)
            except Exception as error:
                undo()
                self.failed(getattr(original, "__name__", "?"), error)
                hooks.current = None
                return original(*args, **kwargs)
            finally:
                hooks.current = None
            hooks.process.threw("graph")
            step.replay(observer, losses)
            return result

        return called

    def traced(self, original: Callable[..., Any], step: Step) -> Any:
        tf, observer = self.hooks.tf, self.hooks.observer
        converted = _converted(original)

        def whole(*args: Any, **kwargs: Any) -> Any:
            step.begin()
            before, observer.tracing = observer.tracing, step
            try:
                result = converted(*args, **kwargs)
            finally:
                observer.tracing = before
            here = tf.compat.v1.get_default_graph()
            losses = [x if _of(x, here) else None for x in step.losses]
            return result, losses

        return tf.function(whole, autograph=False, reduce_retracing=True)

    def failed(self, name: str, error: Exception) -> None:
        self.hooks.observer.notes.append(
            f"{name} cannot be made a graph: {words_of(error)}"
        )
        self.graph_model()

    def graph_model(self) -> None:
        for hooks in self.hooks.process.hooks:
            graph = getattr(hooks, "graph_model", None)
            if graph is not None and graph():
                self.loop["scope"] = "model"
                return

    def facts(self) -> dict[str, Any]:
        """Of a loop that still runs op by op."""
        if not self.loop or self.hooks.observer.per_step("tapes") < 0.5:
            return {}
        return {"eager_loop": self.loop}


def _is_array(x: Any) -> bool:
    """And no variable, which a graph follows."""
    if hasattr(x, "assign") or not hasattr(x, "dtype"):
        return False
    return hasattr(x, "shape") and hasattr(x, "__array__")


def _of(x: Any, graph: Any) -> bool:
    return x is not None and getattr(x, "graph", None) is graph


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `tf.function` would have it: with loops and branches over tensors."""
    api = importlib.import_module("tensorflow.python.autograph.impl.api")
    contexts = importlib.import_module("tensorflow.python.autograph.core.ag_ctx")
    context = contexts.ControlStatusCtx(contexts.Status.ENABLED)
    made: Callable[..., Any] = api.tf_convert(function, context, user_requested=True)
    return made
