"""How many threads of a script's own processes run at a time: each of them may compute
with as many threads as there are processors."""

from __future__ import annotations

import os

__all__ = ["Children"]

_EVERY = 0.25  # s between two looks
_MOST = 64  # processes that are looked at


class Children:
    """Looks at the processes below this one, now and then."""

    def __init__(self) -> None:
        self.looks = self.running = self.most = 0
        self.next = 0.0

    def look(self, now: float) -> None:
        if now < self.next:
            return
        self.next = now + _EVERY
        below = _below(os.getpid())
        if not below:
            return
        self.looks += 1
        self.most = max(self.most, len(below))
        self.running += sum(map(_running, below))

    def told(self) -> dict[str, float]:
        """Processes, and threads of them that ran at a time; nothing without any."""
        if not self.looks:
            return {}
        return {"processes": self.most, "running": self.running / self.looks}


def _read(path: str) -> str:
    try:
        with open(path, encoding="latin-1") as file:
            return file.read()
    except OSError:  # it has ended
        return ""


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _below(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < _MOST:
        one = waiting.pop()
        for task in _tasks(one):
            for child in _read(f"/proc/{one}/task/{task}/children").split():
                found.append(int(child))
                waiting.append(int(child))
    return found


def _running(pid: int) -> int:
    # The state follows the name, which may hold brackets of its own.
    states = (_read(f"/proc/{pid}/task/{t}/stat").rpartition(")") for t in _tasks(pid))
    return sum(rest.startswith(" R") for _, _, rest in states)
