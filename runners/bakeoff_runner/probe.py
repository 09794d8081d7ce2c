"""What an environment holds and does, for ``bakeoff doctor``.

``python -m bakeoff_runner.probe jax`` asks the adapter of the framework that the
environment is named after: its module has ``probe(probe)``. What is found goes to
stdout as lines "bakeoff:key<TAB>value"; frameworks write there as they please, too.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import time

# Libraries of matrix products, and of the threads that they share.
_KINDS = (
    "openblas mkl_ dnnl blis cblas atlas armpl nvpl cublas cudnn gomp iomp5 libomp"
).split()


class Probe:
    """Of one environment."""

    def __init__(self, environment: str) -> None:
        self._environment = environment

    def say(self, key: str, value: object) -> None:
        text = " ".join(str(value).split())
        print(f"bakeoff:{key}\t{text}", flush=True)

    def load(self, module: str) -> None:
        """Imports it, and says its version."""
        found = importlib.import_module(module)
        self.say(f"version.{module}", getattr(found, "__version__", "unknown"))

    def load_framework(self, module: str) -> None:
        """Says how long that took, too."""
        started = time.monotonic()
        self.load(module)
        seconds = f"{time.monotonic() - started:.1f}"
        self.say(f"import_seconds.{self._environment}", seconds)

    def load_if_there(self, module: str, **variables: str) -> None:
        """What contenders may do without; `variables` of the environment come first."""
        os.environ.update(variables)
        try:
            self.load(module)
        except ImportError as error:
            self.say(f"missing.{module}", error)


def _say_blas(probe: Probe) -> None:
    """What numpy was built with, and what this process really has loaded."""
    import numpy

    config = numpy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    probe.say("BLAS of numpy", f"{blas.get('name', '?')} {blas.get('version', '')}")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = {os.path.basename(line.split()[-1]) for line in maps if "/" in line}
    loaded = sorted(f for f in files if any(kind in f for kind in _KINDS))
    probe.say("BLAS libraries loaded", " ".join(loaded) or "none: built in")


def main() -> None:
    environment = sys.argv[1]
    probe = Probe(environment)
    probe.say("python", sys.version.split()[0])
    probe.say("include", sysconfig.get_path("include"))
    probe.load("numpy")
    probe.load("safetensors")
    name = f"bakeoff_runner.adapters.{environment}_adapter"
    importlib.import_module(name).probe(probe)
    _say_blas(probe)
    probe.say("done", "yes")


if __name__ == "__main__":
    main()
