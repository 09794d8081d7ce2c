"""race() and translate(): the program's commands, and their answers as tables."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from bakeoff._data import write_data
from bakeoff._losses import loss_text
from bakeoff._models import Named, named
from bakeoff._program import BakeoffError, run_program
from bakeoff._table import Report, show_in_notebook, table

_NO_VERDICT = 3  # exit code: the host was too busy
_ANSWER_IS_NO = 1

Framework = Union[str, Mapping[str, Any]]


def _names(frameworks: Union[str, Sequence[str]]) -> str:
    return frameworks if isinstance(frameworks, str) else ",".join(frameworks)


def translate(
    model: Any,
    example: Any = None,
    *,
    to: Union[str, Sequence[str]],
    loss: Any = None,
    output: Optional[str] = None,
    out: Union[str, os.PathLike[str], None] = None,
    force: bool = False,
    progress: bool = True,
) -> Any:
    """Writes the model in other frameworks, proven equal: one folder for each.

    `example`: what forward takes, the batch first: a tensor, a tuple or a dict.
    A row for each framework; `attrs["out"]` is the folder of all. Raises BakeoffError
    where nothing could be written; where a part could not, it warns.
    """
    source = named(model, example)
    with source.cleanup:
        arguments = ["translate", *source.arguments, "--to", _names(to)]
        arguments += _given(loss=loss_text(loss), output=output, out=out)
        arguments += ["--format", "json", *(["--force"] if force else [])]
        done = run_program(arguments, progress=progress, serve=source.serve)
    if done.code not in (0, _ANSWER_IS_NO):
        raise done.error()
    answer = json.loads(done.out)
    missing = [row for row in answer["rows"] if not row["written"]]
    said = "\n".join(
        f"{row['name']} is not written: {row['reason']}" for row in missing
    )
    if len(missing) == len(answer["rows"]):
        raise BakeoffError(said)
    if missing:
        warnings.warn(said, stacklevel=2)
    rows = [
        {
            "framework": row["name"],
            "written": row["written"],
            "folder": str(Path(row["folder"]).resolve()) if row["written"] else None,
            "gradients": _check(row, "float64 gradients"),
            "prediction": _check(row, "float64 prediction"),
            "alone": row["example"] or None,
            "reason": row["reason"] or None,
        }
        for row in answer["rows"]
    ]
    return table(
        rows,
        {
            "out": str(Path(answer["out"]).resolve()),
            "import": answer["import"],
            "notes": answer["notes"],
        },
    )


def race(
    model: Any,
    example: Any = None,
    *,
    loss: Any = None,
    data: Union[Sequence[Any], Mapping[str, Any], None] = None,
    frameworks: Union[Framework, Sequence[Framework], None] = None,
    output: Optional[str] = None,
    budget: Union[str, float] = 5,
    out: Union[str, os.PathLike[str], None] = None,
    progress: bool = True,
) -> Any:
    """Proves that the frameworks compute the same as the model, and races them.

    `loss`: an op of `bakeoff ops` with its attributes, "softmax_cross_entropy" or
    "softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100", or one of torch.nn.
    `frameworks`: names, or tables of a recipe: {"framework": "torch", "compile":
    "default"}; default: those that the import's recipe has. `data`: the arrays to train
    on, inputs and then targets, or a dict by the names of the workload's inputs;
    default: drawn ones. `budget`: minutes, or as
    `bakeoff run --budget` takes it. A row for each contender; `attrs["report"]` is the
    HTML report, which a notebook shows.
    """
    folder = Path(os.fspath(out)) if out is not None else _dated(model)
    ours = not folder.exists()
    try:
        with tempfile.TemporaryDirectory(prefix="bakeoff_race_") as scratch:
            source = named(model, example)
            with source.cleanup:
                said = loss_text(loss, data)
                recipe = _recipe(
                    source, said, output, frameworks, Path(scratch), progress
                )
                if data is not None:
                    write_data(source, recipe, data)
            done = run_program(
                ["run", str(recipe), "--out", str(folder), "--format", "json",
                 "--budget", str(budget)],
                progress=progress,
            )  # fmt: skip
        if done.code not in (0, _ANSWER_IS_NO, _NO_VERDICT) or not done.out:
            raise done.error()
    except BaseException:
        if ours and out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    report = Report((folder / "report.html").resolve())
    show_in_notebook(report)
    return _race_table(json.loads(done.out), report)


def _given(**options: Any) -> list[str]:
    words = []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", os.fspath(value)]
    return words


def _check(row: Mapping[str, Any], what: str) -> Optional[float]:
    """The largest relative difference that this proof found."""
    found = [check["error"] for check in row["checks"] if check["what"] == what]
    return found[0] if found else None


def _dated(model: Any) -> Path:
    stem = (
        re.sub(r"\W", "_", Path(model.rpartition(":")[0] or model).stem)
        if isinstance(model, str)
        else type(model).__name__
    )
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{stem}-{now}"


def _toml(value: Any) -> str:
    """Settings are words, numbers, truth values and lists of them: as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _contenders(frameworks: Union[Framework, Sequence[Framework]]) -> str:
    lines = []
    listed = [frameworks] if isinstance(frameworks, (str, Mapping)) else frameworks
    for one in listed:
        settings = {"framework": one} if isinstance(one, str) else dict(one)
        words = (f"{key} = {_toml(value)}" for key, value in settings.items())
        lines.append(f"  {{ {', '.join(words)} }},\n")
    return f"contenders = [\n{''.join(lines)}]\n"


def _recipe(
    source: Named,
    loss: Optional[str],
    output: Optional[str],
    frameworks: Union[Framework, Sequence[Framework], None],
    scratch: Path,
    progress: bool,
) -> Path:
    """The import's own recipe, with the contenders that are wanted."""
    if source.recipe:
        if loss is not None or output is not None or frameworks is not None:
            raise BakeoffError(
                "a recipe names its loss and contenders itself\n  leave out loss, "
                "output and frameworks"
            )
        return Path(source.arguments[0])
    if loss is None and not source.knows_loss:
        raise BakeoffError(
            'the loss is missing\n  for example loss="softmax_cross_entropy" or "mse"'
        )
    stem = re.sub(r"\W", "_", source.name) or "model"
    ir = scratch / f"{stem}.ir"
    done = run_program(
        [
            "import",
            *source.arguments,
            "--out",
            str(ir),
            *_given(loss=loss, output=output),
        ],
        progress=progress,
        serve=source.serve,
    )
    if done.code != 0:
        raise done.error()
    recipe = ir.with_suffix(".toml")
    if frameworks is None:
        return recipe
    text, count = re.subn(
        r"^contenders = \[\n.*?^\]\n",
        lambda _: _contenders(frameworks),
        recipe.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    if count != 1:
        raise BakeoffError(f"the program wrote a recipe without contenders:\n{text}")
    recipe.write_text(text, encoding="utf-8")
    return recipe


def _interval(row: Mapping[str, Any], key: str, part: str) -> Any:
    value = row.get(key)
    return value.get(part) if isinstance(value, Mapping) else None


def _race_table(answer: Mapping[str, Any], report: Report) -> Any:
    rows = [
        {
            "contender": row["contender"]["id"],
            "rank": row["rank"][0] if row.get("rank") else None,
            "ties": row.get("ties") or None,
            "ms_per_step": _interval(row, "ms_per_step", "value"),
            "low": _interval(row, "ms_per_step", "low"),
            "high": _interval(row, "ms_per_step", "high"),
            "ratio": _interval(row, "ratio", "value"),
            "proven": bool(row["proof"] and row["proof"]["passed"]),
            "reason": row["reason"],
        }
        for row in [*answer["ranked"], *answer["unranked"]]
    ]
    return table(
        rows,
        {
            "verdict": answer["host"]["refusal"] or answer["sentence"],
            "decided": answer["decided"] and not answer["host"]["refusal"],
            "report": str(report.path),
            "folder": str(report.path.parent),
            "notes": answer["notes"],
        },
    )
