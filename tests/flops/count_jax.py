"""What XLA's cost analysis says of one training step of emitted scripts.

Run by the Python of the jax environment: count_jax.py FOLDER... Prints a JSON line for
each: "step", XLA's figure for the whole compiled step; "products", the sum of XLA's figures for each matrix
product and convolution in it, compiled alone, as often as its loop runs; "once", the
same with the body of every loop counted a single time, as XLA does.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import jax

PRODUCTS = ("dot_general", "conv_general_dilated")


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flops(compiled: Any) -> float:
    analysis = compiled.cost_analysis()
    return float((analysis[0] if isinstance(analysis, list) else analysis)["flops"])


known: dict[str, float] = {}


def product(equation: Any) -> float:
    """XLA's figure for one product, compiled alone; alike ones are compiled once."""
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    key = f"{equation.primitive.name} {shapes} {equation.params}"
    if key in known:
        return known[key]

    def alone(*operands: Any) -> Any:
        return equation.primitive.bind(*operands, **equation.params)

    known[key] = flops(jax.jit(alone).lower(*shapes).compile())
    return known[key]


def within(equation: Any) -> list[Any]:
    """The programs that an equation runs."""
    found = []
    for value in equation.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns"):
                found.append(inner)
    return found


def add_up(program: Any) -> tuple[float, float]:
    """(as often as loops run, every loop's body once) of all products."""
    often = once = 0.0
    for equation in program.eqns:
        if equation.primitive.name in PRODUCTS:
            one = product(equation)
            often, once = often + one, once + one
            continue
        turns = equation.params["length"] if equation.primitive.name == "scan" else 1
        for inner in within(equation):
            inner_often, inner_once = add_up(inner)
            often, once = often + turns * inner_often, once + inner_once
    return often, once


def count_in(folder: Path) -> dict[str, float]:
    script = load(folder / "train_jax.py")
    weights = script.load_weights(folder / "weights.safetensors")
    batch = next(iter(script.batches(script.load_data(folder / "data.safetensors"))))
    state: tuple[Any, ...]
    if hasattr(script, "init_state"):
        state = (script.init_state(weights),)
    else:
        params = script.init_params(weights)
        state = (params, script.OPTIMIZER.init(params))
    step = flops(script.train_step.lower(*state, *batch).compile())
    program = jax.make_jaxpr(script.train_step)(*state, *batch)
    often, once = add_up(program.jaxpr)
    return {"step": step, "products": often, "once": once}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(count_in(Path(name))), flush=True)
