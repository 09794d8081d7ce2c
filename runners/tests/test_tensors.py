"""safetensors files."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import pytest

from bakeoff_runner.tensors import (
    TensorFileError,
    read_safetensors,
    tensors_of,
    write_safetensors,
)

np = pytest.importorskip("numpy")

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


def test_round_trip_of_every_dtype_and_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tensors = {}
    for dtype in DTYPES:
        for shape in ((), (0,), (1,), (3,), (2, 0, 3), (2, 3, 4)):
            array = (rng.normal(size=shape) * 50).astype(dtype)
            tensors[f"{dtype}/{shape}"] = array
    path = tmp_path / "t.safetensors"
    write_safetensors(path, tensors)
    back = read_safetensors(path)
    assert set(back) == set(tensors)
    for name, array in tensors.items():
        assert back[name].dtype == array.dtype, name
        assert back[name].shape == array.shape, name
        np.testing.assert_array_equal(back[name], array)
        assert back[name].flags.writeable


def test_strided_and_foreign_order_arrays(tmp_path: Path) -> None:
    base = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    path = tmp_path / "t.safetensors"
    write_safetensors(path, {"a": base.transpose(2, 0, 1), "b": base[:, ::2]})
    back = read_safetensors(path)
    np.testing.assert_array_equal(back["a"], base.transpose(2, 0, 1))
    np.testing.assert_array_equal(back["b"], base[:, ::2])


def test_tensors_one_by_one_take_no_more_than_the_largest(tmp_path: Path) -> None:
    path, size = tmp_path / "t.safetensors", 1 << 20
    arrays = {f"t{i}": np.full(size, i, "f8") for i in range(8)}
    tracemalloc.start()
    write_safetensors(path, arrays)
    for name, array in tensors_of(path):
        np.testing.assert_equal(array[[0, -1]], arrays[name][[0, -1]])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2.5 * 8 * size  # the one that was read and the next


def test_layout_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_safetensors(path, {"x": np.array([1.5], "f4")}, {"made": "here"})
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    assert length % 8 == 0
    assert json.loads(raw[8 : 8 + length]) == {
        "__metadata__": {"made": "here"},
        "x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    assert raw[8 + length :] == struct.pack("<f", 1.5)
    assert list(read_safetensors(path)) == ["x"]


def test_the_official_package_agrees(tmp_path: Path) -> None:
    official = pytest.importorskip("safetensors.numpy")
    tensors = {"w": np.arange(6.0).reshape(2, 3), "n": np.array([1, 2], "i4")}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_safetensors(ours, tensors)
    official.save_file(tensors, theirs)
    for back in (official.load_file(ours), read_safetensors(theirs)):
        for name, array in tensors.items():
            np.testing.assert_array_equal(back[name], array)


def raw_file(path: Path, header: object, data: bytes = b"") -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_bfloat16_is_widened(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 3.140625], "f4")
    bits = (values.view("u4") >> 16).astype("u2")
    entry = {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}
    path = raw_file(tmp_path / "t", {"b": entry}, bits.tobytes())
    back = read_safetensors(path)["b"]
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "does not fit"),
        ({"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, "outside the file"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}, "outside the file"),
        ({"dtype": "Q7", "shape": [1], "data_offsets": [0, 4]}, "dtype Q7"),
        ({"dtype": "F32", "shape": [1]}, "data_offsets"),
        (3, "tensor 'x'"),
    ],
)
def test_bad_entries(tmp_path: Path, entry: object, error: str) -> None:
    path = raw_file(tmp_path / "t", {"x": entry}, b"\0" * 12)
    with pytest.raises(TensorFileError, match=error):
        read_safetensors(path)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", "too short"),
        (struct.pack("<Q", 100) + b"{}", "longer than the file"),
        (struct.pack("<Q", 1 << 62) + b"{}", "longer than the file"),
        (struct.pack("<Q", 2) + b"{x", "not JSON"),
        (struct.pack("<Q", 2) + b"[]", "not a JSON object"),
    ],
)
def test_bad_files(tmp_path: Path, raw: bytes, error: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(raw)
    with pytest.raises(TensorFileError, match=error):
        read_safetensors(path)


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_safetensors(path, {"x": np.zeros(1)})
    before = path.read_bytes()
    with pytest.raises(TypeError, match="'y'"):
        write_safetensors(path, {"y": np.array(["text"])})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
