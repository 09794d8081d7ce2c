"""Answers the program's requests about one module."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import torch
from safetensors.torch import load_file, save_file

from bakeoff_import import proof
from bakeoff_import.exporting import (
    Importer,
    InputSpec,
    Refused,
    loss_line,
    parameters_text,
    type_text,
)
from bakeoff_import.graph import ir_word, text_of
from bakeoff_import.origin import copied, load, source_folder
from bakeoff_import.problems import ImportProblem


def _contiguous(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {key: t.detach().clone().contiguous() for key, t in tensors.items()}


class Service:
    def __init__(self, module: Any = None) -> None:
        """`module`: the one that is imported; None: the request names its file."""
        self.importer: Any = None
        self.module = module
        torch.backends.mha.set_fastpath_enabled(False)

    def answer(self, op: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return getattr(self, f"_{op}")(fields)  # type: ignore[no-any-return]
        except ImportProblem as problem:
            return {
                "problem": str(problem),
                "remedy": problem.remedy,
                "where": problem.where,
            }
        except Refused as refused:
            return {"refused": [r.plain() for r in refused.refusals]}

    def _export(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        torch.set_num_threads(int(fields.get("threads", 2)))
        if self.module is None:
            found = load(fields["file"], fields["function"])
            folder = str(Path(fields["file"]).resolve().parent)
        else:
            found, folder = copied(self.module), source_folder(self.module)
        specs = [
            InputSpec(one["name"], one["dtype"], tuple(one["shape"]))
            for one in fields["inputs"]
        ]
        self.importer = Importer(
            found, specs, folder, fields.get("output", ""), fields.get("ops", [])
        )
        made = self.importer.run()
        parameters = parameters_text(made.graph, made.nodes)
        taken = [*made.inputs, *(n.output for n in made.nodes)]
        target, name = _free("y", taken), _free("loss", taken)
        kind, last = loss_line(fields["loss"], made.output, target, name)
        inputs = {name: type_text(*spec) for name, spec in made.inputs.items()}
        text = text_of(
            ir_word(fields["name"]),
            {**inputs, target: kind},
            [*(made.graph.line(node) for node in made.nodes), last],
        )
        # As the origin has them: a bias of both LSTM biases is their sum.
        tensors = {name: p.tensor.double() for name, p in parameters.items()}
        save_file(_contiguous(tensors), fields["weights"])
        return {
            "text": text,
            "target": target,
            "output": made.output.name,
            "names": {name: list(p.targets) for name, p in parameters.items()},
            "lines": [
                {"value": n.output, "op": n.op, "where": n.where, "source": n.source}
                for n in made.nodes
            ],
            "notes": made.notes,
            "version": f"torch {torch.__version__}",
            "unused": sorted(
                {key for key in self.importer.keys.values() if not _counts(key)}
                - {key for p in parameters.values() for key in p.targets}
            ),
        }

    def _inputs(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        held = load_file(fields["inputs"])
        importer = self.importer
        inputs = {}
        for name, spec in zip(importer.names, importer.specs):
            wanted = torch.int64 if spec.dtype == "i32" else torch.float64
            inputs[name] = held[name].to(wanted)
        return inputs, held.get("projection of the outputs")

    def _compute(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if fields["weights"]:
            proof.set_weights(self.importer, load_file(fields["weights"]))
        inputs, projection = self._inputs(fields)
        answer = proof.compute(self.importer, bool(fields["train"]), inputs, projection)
        save_file(_contiguous(answer), fields["out"])
        return {}

    def _trace(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        inputs, _ = self._inputs(fields)
        answer = proof.trace(self.importer, bool(fields["train"]), inputs)
        save_file(_contiguous(answer), fields["out"])
        return {}


def _counts(key: str) -> bool:
    """A batch norm's counter, which computes nothing."""
    return key.endswith("num_batches_tracked")


def _free(wanted: str, taken: list[str]) -> str:
    name, count = wanted, 2
    while name in taken:
        name, count = f"{wanted}{count}", count + 1
    return name
