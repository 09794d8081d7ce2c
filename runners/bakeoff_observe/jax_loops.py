"""Loops that JAX runs op by op: where they are, and the switch `jit_step`.

The switch compiles the user's function that takes the gradients; where it cannot, what
`jax.grad` made, and the updates of optax. Arrays and numbers among the arguments are
given to the compiled function, all else is part of it.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from types import CodeType, ModuleType
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
    from bakeoff_observe.jax_hooks import JaxHooks

_PARTS = 16  # of a step, that are compiled each
_VARIANTS = 8  # of one function's arguments that are no arrays


class EagerLoops:
    def __init__(self, hooks: JaxHooks) -> None:
        self.hooks = hooks
        self.loop: dict[str, Any] = {}  # the first that is found
        self.throws = "jit_step" in hooks.process.switches
        self.places = Loops(self.found)
        self.gradients = False  # whether they and updates are compiled from now on
        self.compiled: dict[Any, Compiled] = {}
        self.once: dict[Any, Any] = {}  # parts that were called

    def enter(self) -> None:
        """What `jax.grad` made is called outside of any compiled function."""
        self.hooks.observer.count("gradients")
        if self.places.left:
            self.places.enter(sys._getframe(2))

    def found(self, code: CodeType, line: int, same: bool) -> None:
        function = "" if same or not plain_step(code) else code.co_name
        if not self.loop:
            self.loop = {
                "function": function,
                "line": number_of(
                    code.co_filename, code.co_firstlineno if function else line
                ),
                "scope": "function" if function else "gradient",
            }
        if self.throws and (not function or not replace(code, self.jit)):
            self.gradients = True

    def jit(
        self, original: Callable[..., Any], undo: Callable[[], None]
    ) -> Callable[..., Any]:
        """The function compiled; as it was, and its gradients, if that fails."""
        hooks, observer, step = self.hooks, self.hooks.observer, Step()
        compiled = Compiled(hooks.jax, self.traced(original, step), original)

        def called(*args: Any, **kwargs: Any) -> Any:
            if hooks.busy or observer.inside or not self.here():
                return original(*args, **kwargs)
            hooks.busy = True
            try:
                out, losses = compiled(args, kwargs)
            except Exception as error:
                hooks.busy = False
                undo()
                self.failed(getattr(original, "__name__", "?"), error)
                return original(*args, **kwargs)
            finally:
                hooks.busy = False
            hooks.process.threw("jit_step")
            hooks.outputs = out
            step.replay(observer, losses)
            return out

        return called

    def here(self) -> bool:
        """Whether what is called now is computed now, by the script's own thread."""
        return self.hooks.clean() and get_ident() == self.hooks.observer.thread

    def traced(self, original: Callable[..., Any], step: Step) -> Callable[..., Any]:
        observer = self.hooks.observer

        def whole(*args: Any, **kwargs: Any) -> Any:
            step.begin()
            before, observer.tracing = observer.tracing, step
            try:
                out = original(*args, **kwargs)
            finally:
                observer.tracing = before
            return out, step.losses

        return whole

    def failed(self, name: str, error: Exception) -> None:
        self.hooks.observer.notes.append(
            f"{name} cannot be compiled: {words_of(error)}"
        )
        self.gradients = bool(self.loop)
        if self.loop:
            self.loop["scope"] = "gradient"

    def call(
        self, key: Any, function: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        """A part of the step, compiled once it is known that no more can be."""
        if not self.gradients or self.hooks.busy or not self.here():
            return function(*args, **kw)
        compiled = self.compiled.get(key)
        if compiled is None:
            if not self.again(key, function):  # a step may make functions of its own
                return function(*args, **kw)
            source = getattr(function, "__wrapped__", function)
            compiled = Compiled(self.hooks.jax, function, source)
            self.compiled[key] = compiled
        self.hooks.busy = True
        try:
            out = compiled(args, kw)
        except Exception as error:
            self.compiled[key] = Compiled(None, function, None)
            self.failed(str(getattr(function, "__name__", "?")), error)
            return function(*args, **kw)
        finally:
            self.hooks.busy = False
        self.hooks.process.threw("jit_step")
        return out

    def again(self, key: Any, function: Callable[..., Any]) -> bool:
        """Whether it is called for the second time."""
        if key in self.once:
            return len(self.compiled) < _PARTS
        if len(self.once) == _PARTS:
            del self.once[next(iter(self.once))]
        self.once[key] = function  # so that nothing else has its identity
        return False

    def part(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of optax, which `call` may compile."""
        if not self.throws:
            return function

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.check(args)
            return self.call(called, function, *args, **kwargs)

        return called

    def check(self, args: Any) -> None:
        """Refuses to trace a step that takes arrays from elsewhere: they may change."""
        if self.hooks.observer.tracing is None:
            return
        for x in self.hooks.jax.tree_util.tree_leaves(args):
            if hasattr(x, "shape") and not isinstance(x, self.hooks.jax.core.Tracer):
                raise ValueError("it takes arrays that are not among its arguments")

    def facts(self) -> dict[str, Any]:
        """Of a loop that still runs op by op."""
        if not self.loop or self.hooks.observer.per_step("gradients") < 0.5:
            return {}
        return {"eager_loop": self.loop}


class Compiled:
    """One function, compiled for each set of arguments that are no arrays, and of
    arrays that its `source` takes from elsewhere."""

    def __init__(self, jax: Any, function: Callable[..., Any], source: Any) -> None:
        self.jax, self.function = jax, function
        self.outer = Outer(source, _is_array)
        self.made: dict[Any, Any] = {}

    def __call__(self, args: Any, kwargs: Any) -> Any:
        if self.jax is None:  # it cannot be compiled
            return self.function(*args, **kwargs)
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        given = [x for x in leaves if _is_number(x)]
        others = tuple((i, x) for i, x in enumerate(leaves) if not _is_number(x))
        outer = self.outer.now()
        key = tree, tuple((i, _identity(x)) for i, x in others), tuple(map(id, outer))
        known = self.made.get(key)
        if known is None:
            if len(self.made) == _VARIANTS:
                raise ValueError("it is given, or takes, something else at each call")
            for _, x in others:
                if any(map(_is_array, self.jax.tree_util.tree_leaves(_held(x)))):
                    raise ValueError(f"it takes arrays that a {type(x).__name__} holds")
            compiled = self.compile(tree, len(leaves), others)
            known = self.made[key] = compiled, others, outer
            return self.first(known[0], given, others)
        return known[0](given)

    def compile(self, tree: Any, count: int, others: Any) -> Any:
        kept = dict(others)

        def flat(given: Any) -> Any:
            rest = iter(given)
            leaves = [kept[i] if i in kept else next(rest) for i in range(count)]
            args, kwargs = self.jax.tree_util.tree_unflatten(tree, leaves)
            return self.function(*args, **kwargs)

        return self.jax.jit(flat)

    def first(self, compiled: Any, given: Any, others: Any) -> Any:
        """The first call; objects that would keep what is traced are as before it."""
        held = [(x, dict(_held(x))) for _, x in others if _held(x)]
        try:
            return compiled(given)
        finally:
            tracer = self.jax.core.Tracer
            for x, before in held:
                parts = self.jax.tree_util.tree_leaves(dict(vars(x)))
                if any(isinstance(one, tracer) for one in parts):
                    vars(x).clear()
                    vars(x).update(before)
                    raise ValueError(f"it changes a {type(x).__name__}")


def _held(x: Any) -> dict[str, Any]:
    """What an object holds that is neither function, class nor module."""
    if isinstance(x, (type, ModuleType)) or callable(getattr(x, "__get__", None)):
        return {}
    return dict(getattr(x, "__dict__", {}))


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape") and hasattr(x, "__array__")


def _is_number(x: Any) -> bool:
    if isinstance(x, bool) or x is None:
        return False
    return isinstance(x, (int, float, complex)) or _is_array(x)


def _identity(x: Any) -> Any:
    return x if isinstance(x, (bool, str, bytes)) else id(x)
