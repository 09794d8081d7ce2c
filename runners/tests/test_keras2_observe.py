"""Observing scripts of Keras 2."""

from __future__ import annotations

from pathlib import Path

import observe_keras
import pytest
from observe_keras import Faces
from tiers import full_tier

pytest.importorskip("tf_keras")


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Faces:
    path = observe_keras.written(tmp_path_factory.mktemp("keras"), "tf_keras")
    return Faces(path, "tf_keras", {})


def test_fit(faces: Faces) -> None:
    observe_keras.check_fit(faces, "tensorflow")


@full_tier
def test_switches_of_fit(faces: Faces) -> None:
    observe_keras.check_switches_of_fit(faces)


def test_switches_of_compile(faces: Faces) -> None:
    observe_keras.check_switches_of_compile(faces, "tensorflow", True)


def test_cached_batch(faces: Faces) -> None:
    observe_keras.check_cached_batch(faces)


@full_tier
def test_calls(faces: Faces, tmp_path: Path) -> None:
    observe_keras.check_calls(faces, tmp_path)


@full_tier
def test_logits(faces: Faces, tmp_path: Path) -> None:
    observe_keras.check_logits(faces, "tensorflow", tmp_path)


@full_tier
def test_fits(faces: Faces) -> None:
    observe_keras.check_fits(faces)


@full_tier
def test_others(faces: Faces) -> None:
    observe_keras.check_others(faces)


def test_apply(faces: Faces) -> None:
    observe_keras.check_apply(faces)
