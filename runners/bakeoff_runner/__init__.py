"""bakeoff_runner: the worker side of Bakeoff.

``python -m bakeoff_runner --framework torch`` serves the runner protocol
(docs/runner_protocol.md) on file descriptors 3 and 4. The core needs the standard
library only; the framework is imported in one adapter.
"""

from __future__ import annotations

PROTOCOL_VERSION = 1
