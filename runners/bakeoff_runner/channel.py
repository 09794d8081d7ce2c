"""The control channel: one JSON object per line, requests in, answers out."""

from __future__ import annotations

import json
import math
import os
import traceback
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from bakeoff_runner.adapter import AdapterError

MAX_LINE = 32 << 20  # bytes; the supervisor refuses longer answers
_MAX_TRACEBACK = 32_000  # characters kept, the end of it


class ProtocolError(Exception):
    """A request that cannot be understood."""


@dataclass(frozen=True)
class Request:
    """One request: its id, its operation and everything else it carried."""

    id: int
    op: str
    fields: Mapping[str, Any]


class Channel:
    """Reads requests from one descriptor and writes answers to another."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        # Whatever the framework starts must not hold the channel open.
        os.set_inheritable(read_fd, False)
        os.set_inheritable(write_fd, False)
        self._in = os.fdopen(read_fd, "rb")
        self._out_fd = write_fd

    def close(self) -> None:
        """Closes both descriptors, where the process lives on."""
        self._in.close()
        os.close(self._out_fd)

    def receive(self) -> Optional[Request]:
        """The next request; None at the end of the stream.

        A line that is no request is answered with ``ok: false`` here (with its id, if
        it has one, else 0) and skipped.
        """
        while True:
            line = self._in.readline()
            if not line:
                return None
            if not line.strip():
                continue
            try:
                return parse_request(line)
            except ProtocolError as error:
                self.fail(_id_of(line), "protocol", error)

    def answer(self, request_id: int, fields: Mapping[str, Any]) -> None:
        """Sends ``{"id": request_id, "ok": true, **fields}``."""
        self._send({"id": request_id, "ok": True, **fields})

    def fail(self, request_id: int, stage: str, error: BaseException) -> None:
        """Sends ``ok: false`` with the stage, the error and its traceback."""
        text = "".join(
            traceback.format_exception(type(error), error, error.__traceback__)
        )
        self._send(
            {
                "id": request_id,
                "ok": False,
                "stage": stage,
                "error": _describe(error)[:_MAX_TRACEBACK],
                "traceback": text[-_MAX_TRACEBACK:],
            }
        )

    def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(strict(message), allow_nan=False).encode() + b"\n"
        if len(line) > MAX_LINE:
            raise ValueError(f"an answer of {len(line)} bytes is too long")
        view = memoryview(line)
        while view:
            view = view[os.write(self._out_fd, view) :]


def parse_request(line: bytes) -> Request:
    """One line as a `Request`; `ProtocolError` says what is wrong with it."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise ProtocolError("not a JSON object")
    number, op = message.pop("id", None), message.pop("op", None)
    if type(number) is not int or number < 1:
        raise ProtocolError("'id' is not a positive integer")
    if not isinstance(op, str):
        raise ProtocolError("'op' is not a string")
    return Request(number, op, message)


def strict(value: Any) -> Any:
    """`value` fit for strict JSON: NaN and infinities as strings, keys as strings.

    Numbers of foreign types (numpy scalars) become Python's, paths and the like
    strings.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        return strict(item())
    return str(value)


def _describe(error: BaseException) -> str:
    """An adapter's own errors are worded for the user; others say what they are."""
    text = str(error)
    if text and isinstance(error, AdapterError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _id_of(line: bytes) -> int:
    try:
        number = json.loads(line)["id"]
    except (ValueError, KeyError, TypeError):
        return 0
    return number if type(number) is int else 0
