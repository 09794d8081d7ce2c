"""Answers the program's requests about one module.

Export, proof and trace are separate requests of one process, as loading torch and the
user's file takes longer than any of them. A module that the user's process goes on to
use (from a notebook) must stay as it is: it is copied, unless something that it holds
reads a part of it, which a copy would not. Answers are plain values; whatever the
user's code raises is told with the user's line and not with that of the importer.
"""

from __future__ import annotations

import contextlib
import copy
import os
from pathlib import Path
from typing import Any, Iterator, Mapping

import torch

from bakeoff_import import proof
from bakeoff_import.counting import without_memory
from bakeoff_import.exporting import Importer
from bakeoff_import.float64 import real_numbers
from bakeoff_import.origin import Kind, load, said
from bakeoff_import.problems import ImportProblem
from bakeoff_import.values import Value
from bakeoff_import.writing import (
    Answering,
    input_specs,
    parameters_text,
    workload_answer,
)
from bakeoff_runner.tensors import tensors_of, write_safetensors

KIND = Kind(torch.nn.Module, "torch.nn.Module", "torch", torch.manual_seed)


def _functions(part: torch.nn.Module) -> Iterator[Any]:
    """What a module has besides methods: hooks, lambdas that it keeps."""
    for held in vars(part).values():
        many = list(held.values()) if isinstance(held, dict) else [held]
        yield from (one for one in many if hasattr(one, "__closure__"))


def _reads(function: Any, module: torch.nn.Module) -> bool:
    """Whether a function holds a part of the module."""
    cells = [c.cell_contents for c in function.__closure__ or ()]
    return any(cell is part for cell in cells for part in module.modules())


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A module that lives in this process stays as it is."""
    if isinstance(module, torch.jit.ScriptModule):
        raise ImportProblem(
            "a ScriptModule has no Python code that can be exported",
            "give the module that it was made from",
        )
    for key, part in module.named_modules():
        if any(_reads(f, module) for f in _functions(part)):
            raise ImportProblem(
                f"'{key or type(part).__name__}' holds a function that reads the model "
                "itself: a copy would compute with the weights of the first",
                "a method, or bakeoff import of a file that makes the model",
            )
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise ImportProblem(
            f"the module cannot be copied: {said(error)}",
            "keep in it only what copy.deepcopy can copy",
        ) from error


def source_folder(module: torch.nn.Module) -> str:
    """Where the user's own sources lie: a notebook's cells have names of their own."""
    inner = getattr(module, "_orig_mod", module)  # of torch.compile
    code = getattr(getattr(type(inner), "forward", None), "__code__", None)
    if code is None:
        return type(inner).__name__  # no file begins with it
    file: str = code.co_filename
    return os.path.dirname(file) or file


class Service(Answering):
    def __init__(self, module: Any = None) -> None:
        """`module`: the one that is imported; None: the request names its file."""
        self.importer: Any = None
        self.module = module
        torch.backends.mha.set_fastpath_enabled(False)

    def _export(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        torch.set_num_threads(int(fields.get("threads", 2)))
        count = bool(fields.get("count", False))
        if self.module is None:
            with without_memory() if count else contextlib.nullcontext():
                found = load(fields["file"], fields["function"], KIND)
            folder = str(Path(fields["file"]).resolve().parent)
        else:
            found, folder = copied(self.module), source_folder(self.module)
        specs = input_specs(fields)
        self.importer = Importer(
            found, specs, folder, fields.get("output", ""), fields.get("ops", [])
        )
        del found  # its copy in float64 is all that is needed
        made = self.importer.run()
        if not count:
            proof.check_dropout(self.importer)
        parameters = parameters_text(made.graph, made.nodes)
        answer = workload_answer(
            fields["name"],
            made.graph,
            made.nodes,
            made.inputs,
            made.output,
            fields["loss"],
        )
        if not count:
            # As the origin has them: a bias of both LSTM biases is their sum.
            tensors = {n: p.tensor.detach().double() for n, p in parameters.items()}
            write_safetensors(fields["weights"], tensors)
        return {
            **answer,
            "names": {name: list(p.targets) for name, p in parameters.items()},
            "notes": made.notes + _classes(fields["loss"], made.output),
            "version": f"torch {torch.__version__}",
            "unused": [key for key in self._own_keys() if key not in made.reached],
            "numbers": self._numbers(made, parameters),
        }

    def _own_keys(self) -> list[str]:
        """Names of what the module holds, once each, without batch norm's counters."""
        return sorted({key for key in self.importer.keys.values() if not _counts(key)})

    def _numbers(self, made: Any, parameters: Mapping[str, Any]) -> dict[str, int]:
        """How many numbers of the module are trained, frozen, left out."""
        tensors = self.importer.tensors()
        trained: set[str] = set()
        for name, p in parameters.items():
            if not p.frozen and name not in made.running:
                trained.update(p.targets)
        known = {self.importer.keys[key] for key in trained}
        counts = {"trained": 0, "frozen": 0, "left_out": 0}
        for key in self._own_keys():
            kind = "frozen" if key in made.reached else "left_out"
            numbers = real_numbers(tensors[key])
            if numbers.is_floating_point():
                counts["trained" if key in known else kind] += numbers.numel()
        return counts

    def _inputs(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        held = {key: torch.from_numpy(t) for key, t in tensors_of(fields["inputs"])}
        importer = self.importer
        inputs = {}
        for name, spec in zip(importer.names, importer.specs):
            wanted = {"i32": torch.int64, "bool": torch.bool}
            inputs[name] = held[name].to(wanted.get(spec.dtype, torch.float64))
        return inputs, held.get("projection of the outputs")

    def _compute(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if fields["weights"]:
            proof.set_weights(self.importer, tensors_of(fields["weights"]))
        inputs, projection = self._inputs(fields)
        answer = proof.compute(self.importer, bool(fields["train"]), inputs, projection)
        write_safetensors(fields["out"], answer)
        return {} if answer else {"blind": True}

    def _trace(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        inputs, _ = self._inputs(fields)
        answer = proof.trace(self.importer, bool(fields["train"]), inputs)
        write_safetensors(fields["out"], answer)
        return {}


def _classes(loss: str, output: Value) -> list[str]:
    """Pictures of classes are N,C,H,W in torch, and its own loss takes axis 1."""
    if loss != "softmax_cross_entropy" or len(output.ir) < 4:
        return []
    return [
        f"the classes are the last axis of the output, of {output.ir[-1]}: for "
        "N,C,H,W give logits.movedim(1, -1)"
    ]


def _counts(key: str) -> bool:
    """A batch norm's counter, which computes nothing."""
    return key.endswith("num_batches_tracked")
