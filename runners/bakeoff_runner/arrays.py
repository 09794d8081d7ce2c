"""The type of numpy's arrays, for annotations: numpy is imported by adapters only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeAlias

    Array: TypeAlias = NDArray[Any]
else:
    Array = Any

__all__ = ["Array"]
