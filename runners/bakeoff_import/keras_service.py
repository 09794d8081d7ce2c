"""Answers the program's requests about one Keras model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

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


class KerasService(Answering):
    def __init__(self) -> None:
        self.importer: Any = None
        self.backend = ""

    def _export(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        folder = str(Path(fields["file"]).resolve().parent)
        keras = keras_setup.prepare(folder)
        from bakeoff_import.keras_export import Importer

        self.backend = backend = keras.backend.backend()
        kind = Kind(keras.Model, "keras.Model", backend, keras.utils.set_random_seed)
        model = load(fields["file"], fields["function"], kind)
        self.importer = importer = Importer(
            keras, model, input_specs(fields), folder, fields.get("output", ""),
            fields["loss"], fields.get("ops", []),
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
            "unused": sorted(
                v.path for v in model.weights if id(v) not in read and _counts(v)
            ),
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


def _counts(variable: Any) -> bool:
    """A variable that layers read in a step, no state of random numbers."""
    return "seed_generator_state" not in variable.path
