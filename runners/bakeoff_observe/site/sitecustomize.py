"""Runs before the observed script; in every other process it does nothing."""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _next_customization() -> None:
    """The ``sitecustomize`` of the interpreter, which this one stands in front of."""
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        if own is not None:  # the import system asks for it by its name
            sys.modules["sitecustomize"] = own


def _start() -> None:
    sys.path[:] = [path for path in sys.path if path != _HERE]
    rest = os.environ.pop("BAKEOFF_OBSERVED_PYTHONPATH", "")
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    _next_customization()
    runners = os.environ.pop("BAKEOFF_OBSERVE", "")
    if not runners:
        return
    sys.path.insert(0, runners)
    try:
        from bakeoff_observe import process
    finally:
        sys.path.remove(runners)
    process.start(runners)


_start()
