"""Reading and writing safetensors files with numpy alone.

Format: little-endian u64 header length; JSON header mapping each name to ``dtype``,
``shape`` and ``data_offsets`` (begin and end within the data); then the data.
numpy is imported on first use: the core of the worker does not need it.
"""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Mapping, Optional, Union

from bakeoff_runner.arrays import Array

_NUMPY_NAME = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_FORMAT_NAME = {numpy: name for name, numpy in _NUMPY_NAME.items()}
_MAX_HEADER = 100_000_000


class TensorFileError(ValueError):
    """The file is not a valid safetensors file; the message names it."""


def write_safetensors(
    path: Union[str, Path],
    tensors: Mapping[str, Any],
    metadata: Optional[Mapping[str, str]] = None,
) -> None:
    """Writes `tensors` (anything ``numpy.asarray`` takes) under their names.

    The data starts 8-byte aligned. The file appears under its name only when complete.
    """
    import numpy as np

    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    arrays: list[Array] = []
    offset = 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        kind = _FORMAT_NAME.get(array.dtype.newbyteorder("<").str)
        if kind is None:
            raise TypeError(f"tensor '{name}': dtype {array.dtype} is not supported")
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        arrays.append(array)
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            file.write(struct.pack("<Q", len(text)))
            file.write(text)
            file.flush()
            for array in arrays:  # one copy at a time, and none where it lies in order
                little = array.dtype.newbyteorder("<")
                np.ascontiguousarray(array, dtype=little).tofile(file)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_safetensors(path: Union[str, Path]) -> dict[str, Array]:
    """Every tensor of the file, as arrays of their own (writable, in native order).

    In the order in which they lie in the file. BF16, which numpy lacks, is widened to
    float32 (exactly). Nothing is held twice.
    """
    return dict(tensors_of(path))


def tensors_of(path: Union[str, Path]) -> Iterator[tuple[str, Array]]:
    """The same, one by one: what is not kept takes no memory."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise TensorFileError(f"{path}: too short for a safetensors file")
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(_MAX_HEADER, size - 8):
            raise TensorFileError(f"{path}: the header is longer than the file")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise TensorFileError(f"{path}: header is not JSON: {error}") from error
        if not isinstance(header, dict):
            raise TensorFileError(f"{path}: the header is not a JSON object")
        header.pop("__metadata__", None)
        for name, entry in sorted(header.items(), key=_begin):
            try:
                array = _read_tensor(file, 8 + length, size, entry)
            except (KeyError, TypeError, ValueError) as error:
                raise TensorFileError(f"{path}: tensor '{name}': {error}") from error
            yield name, array


def _begin(item: tuple[str, Any]) -> int:
    """Where a tensor lies; what has no place is refused when it is read."""
    try:
        return int(item[1]["data_offsets"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def _read_tensor(file: BinaryIO, data_at: int, size: int, entry: Any) -> Array:
    import numpy as np

    kind, shape = entry["dtype"], tuple(int(n) for n in entry["shape"])
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= size - data_at:
        raise ValueError("its data lies outside the file")
    stored = "<u2" if kind == "BF16" else _NUMPY_NAME.get(kind)
    if stored is None:
        raise ValueError(f"dtype {kind} is not supported")
    dtype = np.dtype(stored)
    count = math.prod(shape)
    if count * dtype.itemsize != end - begin:
        raise ValueError(f"shape {list(shape)} does not fit {end - begin} bytes")
    file.seek(data_at + begin)
    array: Array = np.fromfile(file, dtype=dtype, count=count)
    if kind == "BF16":
        array = (array.astype("<u4") << 16).view("<f4")
    return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(shape)
