"""A worker, and a loop as in bursts.py, in one process.

    python -m pairing.in_process_contender MODULE DATA WEIGHTS --framework NAME --ring FILE

Two processes of the same source differ by 3 to 5%, by where libraries and tensors lie and
by other work on the host. In one process both sides have the same. The worker runs in the
main thread, the loop in another; the one without a request waits on a pipe.
"""

from __future__ import annotations

import os
import sys
import threading

from bakeoff_runner import worker

from pairing import bursts


class Announced(bursts.Bursts):  # type: ignore[misc]
    """Says when the loop is ready for its first burst."""

    _ready = False

    def wait(self) -> bool:
        if not self._ready:
            self._ready = True
            self.done(0.0)
        more: bool = super().wait()
        return more


def _serve(module: str, files: list[str]) -> None:
    if not sys.stdin.readline():
        return
    # Meanwhile the worker may have chosen the processors of its own thread.
    os.sched_setaffinity(0, os.sched_getaffinity(os.getpid()))
    try:
        bursts.train(module, Announced(), files)
    except SystemExit:
        pass
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)  # whoever asks would wait for ever


def main() -> int:
    module, data, weights, *rest = sys.argv[1:]
    threading.Thread(target=_serve, args=(module, [data, weights]), daemon=True).start()
    code: int = worker.main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
