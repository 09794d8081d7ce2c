"""Answers the program's requests about one Keras model.

The model lives in a process of its own, as the user's file may do anything when it is
imported, and Keras keeps its types and backend for the life of a process. A live model
of a notebook stays in the user's process, which goes on to use it: Keras computes in
float64 within `live()` alone, and variables have their values and types back behind it.
Each request is answered by values and text; no object of Keras leaves this side.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

import numpy as np
from safetensors.numpy import load_file, save_file

from bakeoff_import import keras_setup
from bakeoff_import.origin import Kind, load, user_place
from bakeoff_import.problems import ImportProblem
from bakeoff_import.writing import (
    Answering,
    input_specs,
    parameters_text,
    workload_answer,
)


def _contiguous(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.asarray(a, order="C") for key, a in arrays.items()}


@contextlib.contextmanager
def live(model: Any) -> Iterator[Any]:
    """A model that this process goes on to use: it computes in float64 meanwhile, as
    Keras does. Gives Keras."""
    with keras_setup.prepared(source_folder(model)) as keras:
        if not isinstance(model, keras.Model):
            yield keras
            return
        layers = [(part, part._dtype_policy) for part in _parts(model)]
        kept = [
            (v, v._value, v._dtype, np.array(keras.ops.convert_to_numpy(v.value)))
            for v in model.variables
        ]
        try:
            for part, policy in layers:
                if policy.quantization_mode is None:  # else it is refused by that
                    part._dtype_policy = keras.DTypePolicy("float64")
            for v, _, dtype, array in kept:
                if dtype in keras_setup.NARROW:
                    wide = keras.Variable(array, dtype="float64", trainable=v.trainable)
                    v._value, v._dtype = wide._value, "float64"
            yield keras
        finally:
            for part, policy in layers:
                part._dtype_policy = policy
            for v, value, dtype, array in kept:
                v._value, v._dtype = value, dtype
                if (
                    dtype not in keras_setup.NARROW
                ):  # counters, states of random numbers
                    v.assign(array)


def _check_live(keras: Any, model: Any) -> None:
    if not isinstance(model, keras.Model):
        raise ImportProblem(
            f"a {type(model).__name__} is no keras.Model",
            "wrap it: keras.Sequential([keras.Input(...), layer])",
        )
    if not model.built:
        raise ImportProblem(
            "the model has no weights yet", "call it once: model(example)"
        )


def _parts(model: Any) -> list[Any]:
    """The model and all of its layers, each once."""
    found = {id(part): part for part in (model, *model._flatten_layers())}
    return list(found.values())


def source_folder(model: Any) -> str:
    """Where the user's own sources lie; a notebook's cells have names of their own."""
    for part in _parts(model) if hasattr(model, "_flatten_layers") else ():
        if not type(part).__module__.startswith(("keras.", "keras_hub.")):
            file: str = type(part).call.__code__.co_filename
            return os.path.dirname(file) or file
    return type(model).__name__  # no file begins with it


class KerasService(Answering):
    def __init__(self, model: Any = None, loss_if_none: str = "") -> None:
        """`model`: a live one, within live(); None: the request names its file.
        loss_if_none: of a model that was compiled without one."""
        self.loss_if_none = loss_if_none
        self.importer: Any = None
        self.backend = ""
        self.model = model

    def _loaded(self, fields: Mapping[str, Any]) -> tuple[Any, Any, str]:
        if self.model is not None:
            keras = sys.modules["keras"]
            _check_live(keras, self.model)
            return keras, self.model, source_folder(self.model)
        folder = str(Path(fields["file"]).resolve().parent)
        keras = keras_setup.prepare(folder)
        backend, seed = keras.backend.backend(), keras.utils.set_random_seed
        kind = Kind(keras.Model, "keras.Model", backend, seed)
        return keras, load(fields["file"], fields["function"], kind), folder

    def _export(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        keras, model, folder = self._loaded(fields)
        from bakeoff_import.keras_export import Importer

        self.backend = backend = keras.backend.backend()
        self.importer = importer = Importer(
            keras, model, input_specs(fields), folder, fields.get("output", ""),
            fields["loss"], fields.get("ops", []), self.loss_if_none,
        )  # fmt: skip
        made = importer.run()
        parameters = parameters_text(made.graph, made.nodes)
        answer = workload_answer(
            fields["name"],
            made.graph,
            made.nodes,
            made.inputs,
            made.output.value,
            made.loss,
        )
        arrays = {n: np.asarray(p.tensor, np.float64) for n, p in parameters.items()}
        save_file(_contiguous(arrays), fields["weights"])
        reads = made.walk.reads
        read = {id(reads[n].variable) for n in parameters if n in reads}
        read |= made.walk.constants
        moved = {
            id(reads[n].variable)
            for n, p in parameters.items()
            if n in reads and not p.frozen and n not in made.walk.running
        }
        weights = {id(v): v for v in model.weights if _counts(v)}.values()
        return {
            **answer,
            "names": {
                n: [reads[n].variable.path] if n in reads else [] for n in parameters
            },
            "notes": made.notes,
            "version": f"Keras {keras.__version__} on {backend}",
            "biased": True,
            "loss": made.loss,
            "batch": importer.specs[0].shape[0],
            "unused": sorted(v.path for v in weights if id(v) not in read),
            "numbers": _numbers(model, weights, read, moved, made.still),
        }

    def _inputs(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        held = load_file(fields["inputs"])
        inputs = {name: held[name] for name in self.importer.names}
        return inputs, held.get("projection of the outputs")

    def _compute(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        from bakeoff_import import keras_proof

        if fields["weights"]:
            keras_proof.set_weights(self.importer, load_file(fields["weights"]))
        inputs, projection = self._inputs(fields)
        train = bool(fields["train"])
        given = projection if train else None
        try:
            answer = keras_proof.compute(self.importer, train, inputs, given)
        except ImportProblem:
            raise
        except Exception as error:
            folder = self.importer.folder
            lines = f"{type(error).__name__}: {error}".strip().splitlines()
            raise ImportProblem(
                f"the model itself cannot compute in float64 on {self.backend}: "
                f"{lines[0]}",
                "'import tensorflow', 'import jax' or 'import torch' in the file "
                "chooses Keras's backend",
                user_place(error, folder),
            ) from error
        save_file(_contiguous(answer), fields["out"])
        return {}

    def _trace(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        from bakeoff_import import keras_proof

        inputs, _ = self._inputs(fields)
        save_file(_contiguous(keras_proof.trace(self.importer, inputs)), fields["out"])
        return {}


def _numbers(
    model: Any, weights: Iterable[Any], read: set[int], moved: set[int], still: set[int]
) -> dict[str, int]:
    """How many numbers of the model are trained, frozen and left out. `read`, `moved`:
    variables that the workload reads and trains, by identity; `still`: that no gradient
    reaches in the workload, the proof looks whether one does in the model."""
    trained = {id(v) for v in model.trainable_variables} & read - still
    if wrong := [v.path for v in weights if (id(v) in trained) != (id(v) in moved)]:
        raise ImportProblem(
            f"the import and the model do not train the same: {', '.join(wrong)}",
            "this is a defect of bakeoff, please report it with the model",
        )
    numbers = {"trained": 0, "frozen": 0, "left_out": 0}
    for v in weights:
        kind = "trained" if id(v) in trained else "frozen"
        numbers[kind if id(v) in read else "left_out"] += math.prod(v.shape)
    return numbers


def _counts(variable: Any) -> bool:
    """A variable that layers read in a step, no state of random numbers."""
    return "seed_generator_state" not in variable.path
