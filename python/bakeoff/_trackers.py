"""Writes a run of Bakeoff with the client of W&B or MLflow; `bakeoff export` calls it.

Usage: _trackers.py wandb|mlflow SCRATCH OUT
SCRATCH/experiment.json holds the run (src/exports/series.h). SCRATCH/answer.json
becomes {"made": [lines]} or {"error": ..., "remedy": ...}. Imports nothing else of this
package: the program carries a copy and runs it with any Python that has the client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any


class Refused(Exception):
    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def lacking(package: str, error: ImportError) -> Refused:
    return Refused(
        f"{sys.executable} has no package {package} that works: {error}",
        f"run {sys.executable} -m pip install {package}, or name another interpreter "
        "with --python",
    )


def to_wandb(experiment: dict[str, Any], scratch: Path, out: Path) -> list[str]:
    """One offline run a contender, moved to OUT/wandb when all of them are complete."""
    # What surrounds this process may be a run of W&B itself; its name is not ours.
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        if name not in ("WANDB_ENTITY", "WANDB_BASE_URL"):
            del os.environ[name]
    for name in ("DIR", "CACHE_DIR", "CONFIG_DIR", "DATA_DIR", "ARTIFACT_DIR"):
        os.environ[f"WANDB_{name}"] = str(scratch)
    os.environ.update(
        WANDB_MODE="offline",
        WANDB_SILENT="true",
        WANDB_CONSOLE="off",
        WANDB_DISABLE_GIT="true",
        WANDB_DISABLE_CODE="true",
        WANDB_ERROR_REPORTING="false",
    )
    try:
        import wandb
    except ImportError as error:
        raise lacking("wandb", error) from error
    for contender in experiment["contenders"]:
        run = wandb.init(
            project=re.sub(r"[/\\#?%:]", "_", experiment["name"])[:128] or "bakeoff",
            group=experiment["run"],
            name=contender["contender"],
            config={**contender["settings"], "contender": contender["contender"]},
            notes=contender["reason"] or experiment["verdict"],
            tags=["bakeoff", "not ranked" if contender["failed"] else "ranked"],
            dir=str(scratch),
            mode="offline",
            reinit=True,
            settings=wandb.Settings(x_disable_stats=True, x_disable_meta=True),
        )
        for series in contender["series"]:
            axis = f"{series['tag'].rpartition('/')[0]}/{series['over']}"
            run.define_metric(axis, hidden=True)
            run.define_metric(series["tag"], step_metric=axis)
            for step, wall, value in series["points"]:
                run.log({series["tag"]: value, axis: step, "_timestamp": wall})
        run.summary.update(contender["numbers"])
        run.finish(exit_code=1 if contender["failed"] else 0)
    made = sorted((scratch / "wandb").glob("offline-run-*"))
    if len(made) != len(experiment["contenders"]):
        raise Refused(
            f"wandb wrote {len(made)} of {len(experiment['contenders'])} runs"
        )
    target = out / "wandb"
    target.mkdir(parents=True, exist_ok=True)
    moved: list[Path] = []
    try:
        for folder in made:
            moved.append(target / folder.name)
            folder.rename(moved[-1])
    except BaseException:
        for folder in moved:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return [str(folder) for folder in moved]


def plain_key(text: str) -> str:
    """A name that MLflow takes for parameters and metrics."""
    return re.sub(r"[^\w\-. :/]", "_", text, flags=re.ASCII).strip("/.")[:200] or "_"


def to_mlflow(experiment: dict[str, Any], scratch: Path, out: Path) -> list[str]:
    """One run a contender in a SQLite file, in an experiment named after the recipe."""
    try:
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise lacking("mlflow", error) from error
    if out.exists() and out.read_bytes()[:16] not in (b"", b"SQLite format 3\0"):
        raise Refused(
            f"{out} is no SQLite file", "name another --out, such as mlflow.db"
        )
    # A new file appears when it is complete; one that is there is added to.
    is_new = not out.exists()
    file = scratch / "mlflow.db" if is_new else out
    try:
        client = MlflowClient(f"sqlite:///{file}")
        found = client.get_experiment_by_name(experiment["name"])
        identity = (
            found.experiment_id
            if found
            else client.create_experiment(
                experiment["name"] or "bakeoff",
                artifact_location=(out.parent / "mlartifacts").as_uri(),
            )
        )
    except ImportError as error:
        raise lacking("mlflow", error) from error
    made: list[str] = []
    try:
        for contender in experiment["contenders"]:
            run = client.create_run(
                identity,
                start_time=int(experiment["started_s"] * 1000) or None,
                run_name=contender["contender"],
            )
            made.append(run.info.run_id)
            tags = {
                "bakeoff.run": experiment["run"],
                "bakeoff.contender": contender["contender"],
                "bakeoff.verdict": experiment["verdict"],
                "bakeoff.not_ranked": contender["reason"],
            }
            points = [
                Metric(plain_key(series["tag"]), value, int(wall * 1000), step)
                for series in contender["series"]
                for step, wall, value in series["points"]
            ]
            points += [
                Metric(plain_key(f"verdict/{name}"), value, 0, 0)
                for name, value in contender["numbers"].items()
            ]
            client.log_batch(
                run.info.run_id,
                params=[
                    Param(plain_key(key), value[:500])
                    for key, value in contender["settings"].items()
                ],
                tags=[RunTag(k, v[:5000]) for k, v in tags.items() if v],
            )
            for begin in range(0, len(points), 900):
                client.log_batch(run.info.run_id, metrics=points[begin : begin + 900])
            client.set_terminated(
                run.info.run_id, "FAILED" if contender["failed"] else "FINISHED"
            )
        if is_new:
            file.rename(out)
    except BaseException:
        for identity in made:
            if not is_new:
                client.delete_run(identity)
        raise
    return [str(out)]


def ended(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def main() -> int:
    tool, scratch, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    signal.signal(signal.SIGTERM, ended)
    experiment = json.loads((scratch / "experiment.json").read_text(encoding="utf-8"))
    code = 0
    try:
        tools = {"wandb": to_wandb, "mlflow": to_mlflow}
        answer: dict[str, Any] = {"made": tools[tool](experiment, scratch, out)}
    except Refused as error:
        answer, code = {"error": str(error), "remedy": error.remedy}, 2
    except OSError as error:
        answer, code = {"error": f"{tool}: {error}"}, 2
    (scratch / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
