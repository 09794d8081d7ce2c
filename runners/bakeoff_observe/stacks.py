"""Where the time of a step goes: lines of the user's files, and calls of the hooks.

Both are asked for in the observing run alone, by `watch` in a request.

A frame that this thread holds while the other goes on keeps its locals alive, which
then end in this thread: among them guards of PyTorch, which restore a state of the
thread that they end in. And a frame that the other leaves while it is being read ends
the process. So a look is one call of C, in which no other thread runs Python, not even
by the garbage collector's callbacks; it keeps the code, the line and the globals alone.
"""

from __future__ import annotations

import _thread
import functools
import gc
import itertools
import operator
import os
import sys
import time
from types import CodeType, FrameType
from typing import Any, Callable, Optional, cast

from bakeoff_observe.accounts import account_of, loads
from bakeoff_observe.children import Children
from bakeoff_observe.functions import GENERATES, is_own, number_of
from bakeoff_observe.observer import Observer
from bakeoff_observe.rounds import Constant, Loop, loops_of

Place = tuple[str, int, str]  # file, line and function
Part = tuple[CodeType, Optional[int], dict[str, Any]]  # of a frame, with its globals

_CALL: Any = operator.methodcaller("__call__")
_PART: Any = operator.attrgetter("f_code", "f_lineno", "f_globals")
_HERE = os.path.dirname(os.path.abspath(__file__))
_EVERY = 0.005  # s between two looks
_SWITCH = 1e-4  # s that the training thread may still run once this one wants to look
_SHARE = 0.03  # of all looks, from which on a line is told
_MOST = 8
_CALLERS = 24  # lines that are told for what they call
_EAGER = ("jax", "jaxlib", "optax", "flax")  # outside of compiled functions
_TRACES = "jax._src.pjit"  # a function of the user's, called by this, is traced
_STACKS = 4096  # that are kept apart
_ROUNDS = 8  # of a loop in one step, from which on it is told
_APART = 0.1  # of all looks, from which on a loop has books of its own
_WITHIN = 0.95  # of a loop's looks, that are in another which it lies in
_READS = "jax._src.array"  # where results are waited for
_TRIED = 2000  # calls that tell what one costs
_sleep = time.sleep  # as it was before anybody watched it


class Lines:
    """Looks at the training thread's stack again and again, from another thread."""

    def __init__(self, thread: int, compiled: Callable[[], bool]) -> None:
        self.thread, self.compiled = thread, compiled
        self.seen: dict[Place, int] = {}
        self.eager: dict[Place, int] = {}  # looks in ops of JAX alone
        self.input: dict[Place, int] = {}  # looks in what a loader called
        # By the places of the user's own frames, the innermost first, how many of them
        # JAX traces, and the account.
        self.stacks: dict[tuple[tuple[Place, ...], int, str], int] = {}
        self.children = Children()
        self.accounts: dict[str, int] = {}
        self.looks = 0
        self.on = True
        # Else this thread waits for a call that lets go of the interpreter, and sees
        # such calls alone.
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while self.on:
            _sleep(_EVERY)
            stack = stack_of(self.thread)
            places, traced = _own_places(stack)
            if not places or not self.on:
                continue
            place = places[0]
            self.seen[place] = self.seen.get(place, 0) + 1
            self.input[place] = self.input.get(place, 0) + loads(stack)
            account = account_of(stack, is_own, self.compiled)
            look = places, traced, account
            if look in self.stacks or len(self.stacks) < _STACKS:
                self.stacks[look] = self.stacks.get(look, 0) + 1
            self.looks += 1
            self.children.look(time.monotonic())
            self.accounts[account] = self.accounts.get(account, 0) + 1
            module = str(stack[0][2].get("__name__", ""))
            eager = module.split(".")[0] in _EAGER and module != _READS
            if eager and not self.compiled():
                self.eager[place] = self.eager.get(place, 0) + 1

    def stop(
        self, rounds: dict[Loop, int], constants: list[Constant]
    ) -> dict[str, Any]:
        """The lines that were seen most often, with their shares of all looks, and
        those that called them; and loops: those with as many rounds in a step, and
        those that JAX unrolls."""
        self.on = False
        sys.setswitchinterval(self.interval)
        within = self.within()
        most = [place for place, n in _most(self.seen) if n >= _SHARE * self.looks]
        callers = [place for place, n in _most(within, _CALLERS) if place not in most]
        lines = [
            {
                "line": number_of(place[0], place[1]),
                "function": place[2],
                "share": self.seen.get(place, 0) / self.looks,
                "within": within.get(place, 0) / self.looks,
                "eager": self.eager.get(place, 0) / self.looks,
                "input": self.input.get(place, 0) / self.looks,
            }
            for place in most + callers
        ]
        accounts = {name: n / self.looks for name, n in self.accounts.items()}
        return {
            "lines": lines,
            "loops": self.loops(rounds),
            "accounts": accounts,
            "books": self.books(),
            "children": self.children.told(),
            "constants": [self.constant(one) for one in constants],
        }

    def within(self) -> dict[Place, int]:
        """Looks in which a line was on the stack, by itself or by what it called."""
        found: dict[Place, int] = {}
        for (places, _, _), n in self.stacks.items():
            for place in set(places):
                found[place] = found.get(place, 0) + n
        return found

    def constant(self, one: Constant) -> dict[str, Any]:
        """With the share of looks within it."""
        within = sum(
            n
            for (places, _, _), n in self.stacks.items()
            if any(one.runs(*place) for place in places)
        )
        share = within / max(1, self.looks)
        told = {"line": number_of(one.file, one.line), "function": one.function}
        return {**told, "calls": one.calls, "share": share}

    def loops(self, rounds: dict[Loop, int]) -> list[dict[str, Any]]:
        share: dict[Loop, float] = {}
        traced: dict[Loop, float] = {}
        for (places, inner, _), n in self.stacks.items():
            for loop in self.around(places):
                share[loop] = share.get(loop, 0) + n / self.looks
            for loop in self.around(places[:inner]):
                traced[loop] = traced.get(loop, 0) + n / self.looks
        found = [
            {
                "line": number_of(loop.file, loop.line),
                "rounds": rounds.get(loop, 0),
                "share": part,
                "traced": traced.get(loop, 0),
            }
            for loop, part in sorted(share.items(), key=lambda one: -one[1])
            if traced.get(loop) or (rounds.get(loop, 0) >= _ROUNDS and part >= _SHARE)
        ]
        return found[:_MOST]

    def books(self) -> list[dict[str, Any]]:
        """Of the loops that a script or one of its rounds consists of, where there are
        two or more: what each takes of all looks, by its accounts."""
        looks: dict[Loop, dict[str, int]] = {}
        both: dict[tuple[Loop, Loop], int] = {}
        for (places, _, account), n in self.stacks.items():
            loops = [loop for loop in self.around(places) if not loop.part]
            for loop in loops:
                mine = looks.setdefault(loop, {})
                mine[account] = mine.get(account, 0) + n
                for other in loops:
                    both[loop, other] = both.get((loop, other), 0) + n
        size = {loop: sum(mine.values()) for loop, mine in looks.items()}
        # A loop around all others is taken away, until several are left side by side.
        left = [loop for loop in looks if size[loop] >= _APART * self.looks]

        def lies_in(inner: Loop, outer: Loop) -> bool:
            if inner == outer or both.get((inner, outer), 0) < _WITHIN * size[inner]:
                return False
            return size[inner] < size[outer] or outer.last - outer.line > (
                inner.last - inner.line
            )

        while left:
            top = [a for a in left if not any(lies_in(a, b) for b in left)]
            if len(top) != 1:
                most = sorted(top, key=lambda one: -size[one])[:_MOST]
                return [self.book(loop, looks[loop]) for loop in most]
            left.remove(top[0])
        return []

    def book(self, loop: Loop, looks: dict[str, int]) -> dict[str, Any]:
        shares = {account: n / self.looks for account, n in looks.items()}
        return {"line": number_of(loop.file, loop.line), "accounts": shares}

    def around(self, places: tuple[Place, ...]) -> set[Loop]:
        return {
            loop
            for file, line, _ in places
            for loop in loops_of(file)
            if loop.has(file, line)
        }


def _most(seen: dict[Place, int], count: int = _MOST) -> list[tuple[Place, int]]:
    return sorted(seen.items(), key=lambda one: -one[1])[:count]


def stack_of(thread: int) -> list[Part]:
    """Its frames, the innermost first; none once the thread has ended."""
    frames = map(operator.itemgetter(thread), iter(sys._current_frames, None))
    outwards = itertools.chain(itertools.islice(frames, 1), itertools.repeat("f_back"))
    all_frames = itertools.takewhile(bool, itertools.accumulate(outwards, getattr))
    look: Callable[[], Any] = functools.partial(list, map(_PART, all_frames))
    collects = gc.isenabled()
    calls = (gc.disable, look, gc.enable) if collects else (int, look, int)
    try:
        stack = list(map(_CALL, calls))[1]  # here all of it happens
        return cast("list[Part]", stack)
    except KeyError:
        if collects:
            gc.enable()
        return []


def _own_places(stack: list[Part]) -> tuple[tuple[Place, ...], int]:
    """Of the user's own frames, the innermost first; and how many of them are within
    JAX's tracing of a function."""
    places: list[Place] = []
    traced = 0
    for code, line, names in stack:
        if is_own(code.co_filename):
            places.append((code.co_filename, line or 0, code.co_name))
        elif places and names.get("__name__") == _TRACES:
            traced = len(places)
    return tuple(places), traced


class HookCalls:
    """Counts the calls of this package's functions in some steps."""

    def __init__(self, steps: int) -> None:
        self.count, self.before = 0, steps
        self.on = sys.getprofile() is None  # else the script has a profiler of its own
        if self.on:
            sys.setprofile(self._seen)

    def _seen(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_HERE):
            # Of a generator each round is a call: a report looks at all objects.
            self.count += not code.co_flags & GENERATES

    def stop(self, steps: int) -> Optional[dict[str, float]]:
        if not self.on:
            return None
        sys.setprofile(None)
        calls = self.count / max(1, steps - self.before)
        return {"calls_per_step": calls, "seconds_per_call": seconds_per_call()}


def seconds_per_call() -> float:
    """Of the dearest of these functions, which runs at the end of each step."""
    observer = Observer()
    observer.kind = "optimizer"
    since = time.perf_counter()
    for _ in range(_TRIED):
        observer.boundary("optimizer")
    return (time.perf_counter() - since) / _TRIED
