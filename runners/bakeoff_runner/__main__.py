"""Entry point: ``python -m bakeoff_runner --framework NAME [--ring PATH]``."""

from __future__ import annotations

import sys

from bakeoff_runner.worker import main

if __name__ == "__main__":
    sys.exit(main())
