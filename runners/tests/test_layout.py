"""Layouts: canonical to a framework's and back."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from bakeoff_runner.layout import (
    LayoutEntry,
    LayoutError,
    by_order,
    entry_for,
    read_layout,
    to_canonical,
    to_framework,
)

np = pytest.importorskip("numpy")


def test_conv_kernel() -> None:
    canonical = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)  # O,I,kH,kW
    entry = LayoutEntry("kernel", perm=(2, 3, 1, 0))
    ours = to_framework(canonical, entry)
    assert ours.shape == (4, 5, 3, 2)
    assert ours[1, 2, 0, 1] == canonical[1, 0, 1, 2]


def test_linear_after_flatten_of_another_order() -> None:
    # C,H,W features in canonical order; the framework flattens H,W,C.
    channels, height, width, outputs = 3, 2, 4, 5
    activation = np.random.default_rng(1).normal(size=(channels, height, width))
    weight = np.random.default_rng(2).normal(size=(outputs, 24))
    entry = LayoutEntry(
        "kernel",
        view=(outputs, channels, height, width),
        perm=(2, 3, 1, 0),
        reshape=(24, outputs),
    )
    ours = activation.transpose(1, 2, 0).reshape(-1) @ to_framework(weight, entry)
    np.testing.assert_allclose(ours, weight @ activation.reshape(-1), rtol=1e-12)


def test_round_trips_of_random_layouts() -> None:
    rng = random.Random(7)
    for _ in range(300):
        dims = [rng.randint(1, 4) for _ in range(rng.randint(1, 5))]
        size = int(np.prod(dims))
        canonical_shape = rng.choice([dims, [size], [dims[0], size // dims[0]]])
        perm = list(range(len(dims)))
        rng.shuffle(perm)
        moved = [dims[axis] for axis in perm]
        entry = LayoutEntry(
            "any",
            view=tuple(dims),
            perm=rng.choice([None, tuple(perm)]),
            reshape=rng.choice([None, (size,), (moved[0], size // moved[0])]),
        )
        canonical = np.arange(size).reshape(canonical_shape)
        ours = to_framework(canonical, entry)
        back = to_canonical(ours, entry, canonical_shape)
        assert back.shape == tuple(canonical_shape)
        np.testing.assert_array_equal(back, canonical)


def test_every_permutation_without_a_view() -> None:
    canonical = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    for perm in itertools.permutations(range(3)):
        entry = LayoutEntry("any", perm=perm)
        back = to_canonical(to_framework(canonical, entry), entry, (2, 3, 4))
        np.testing.assert_array_equal(back, canonical)


def test_absent_entry_changes_nothing() -> None:
    entry = entry_for({}, "fc.bias")
    array = np.arange(3)
    assert entry.target == "fc.bias"
    assert to_framework(array, entry) is array


def test_scalar() -> None:
    entry = LayoutEntry("gain", reshape=(1,))
    ours = to_framework(np.array(2.0), entry)
    assert ours.shape == (1,)
    assert to_canonical(ours, entry, ()).shape == ()


@pytest.mark.parametrize(
    "entry",
    [
        LayoutEntry("k", view=(5, 5)),
        LayoutEntry("k", perm=(0, 0)),
        LayoutEntry("k", perm=(0, 1, 2)),
        LayoutEntry("k", reshape=(7,)),
    ],
)
def test_misfit_names_the_target(entry: LayoutEntry) -> None:
    with pytest.raises(LayoutError, match="'k'"):
        to_framework(np.zeros((2, 3)), entry)


def test_misfit_on_the_way_back() -> None:
    with pytest.raises(LayoutError, match="'k'"):
        to_canonical(np.zeros((2, 3)), LayoutEntry("k", perm=(0, 0)), (2, 3))
    with pytest.raises(LayoutError, match="'k'"):
        to_canonical(np.zeros((2, 3)), LayoutEntry("k"), (7,))


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    table = {"a": {"target": "b", "perm": [1, 0]}, "c": {"target": "d", "view": [4]}}
    path.write_text(json.dumps(table))
    assert read_layout(path) == {
        "a": LayoutEntry("b", perm=(1, 0)),
        "c": LayoutEntry("d", view=(4,)),
    }
    assert read_layout(None) == {}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"a": {}}', "'a': no target"),
        ('{"a": "b"}', "'a': no target"),
        ('{"a": {"target": "b", "perm": "10"}}', "perm is not a list of integers"),
        ('{"a": {"target": "b", "shape": [1]}}', "unknown key 'shape'"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "layout.json"
    path.write_text(text)
    with pytest.raises(LayoutError, match=error):
        read_layout(path)


def test_axes_of_one_are_no_other_shape() -> None:
    table = np.arange(6.0).reshape(1, 2, 3)
    layout = by_order({}, {"w": table, "v": table}, {"w": (2, 3), "v": (3, 2)})
    ours = to_framework(table, entry_for(layout, "w"))
    assert ours.shape == (2, 3)
    np.testing.assert_array_equal(
        to_canonical(ours, entry_for(layout, "w"), table.shape), table
    )
    assert to_framework(table, entry_for(layout, "v")).shape == (1, 2, 3)
