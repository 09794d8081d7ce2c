"""What a script lacks to be a contender, as far as its source tells: ``bakeoff check``.

    python3 -I static_check.py mine.py [FRAMEWORK]

Reads the source, runs none of it, and imports nothing but the standard library. Prints
one JSON object: ``framework``; ``problems``, each with a line, a text and a remedy;
``missing``, what the adapter needs and the script does not define; ``lines``, those to
add at its end, with the script's own names; ``unsolved``, what it cannot write; and
``notes``.
"""

from __future__ import annotations

import ast
import copy
import json
import sys
from typing import Any, Iterator, Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Scope = Optional[Function]

# Packages by the framework that they mean; the first that a script imports decides.
_FRAMEWORKS = {
    "tf_keras": "keras2",
    "keras": "keras",
    "optax": "jax",
    "jax": "jax",
    "torch": "torch",
    "tensorflow": "tensorflow",
}
_DOWNLOADS = {"urlopen", "urlretrieve", "get_file", "load_dataset", "from_pretrained"}


class Script:
    """A parsed script, and what its parts are called."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.functions = {
            node.name: node
            for node in self.tree.body
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        self.classes = {
            n.name: n for n in self.tree.body if isinstance(n, ast.ClassDef)
        }
        self.names = set(self._module_names())
        # (function or None, name, value), in the order of the source.
        self.assigned: list[tuple[Scope, str, ast.expr]] = []
        for scope in (None, *self.functions.values()):
            for node in self.within(scope):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    self._assign(scope, node.targets[0], node.value)

    def _assign(self, scope: Scope, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.assigned.append((scope, target.id, value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts):
                self._assign(scope, one, its)

    def _module_names(self) -> Iterator[str]:
        """Names that the module has after its import: its main part does not run."""
        for node in self.at_import():
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    yield (alias.asname or alias.name).partition(".")[0]
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id

    def at_import(self) -> Iterator[ast.AST]:
        """Nodes that run when the script is imported, functions and classes as one."""
        waiting: list[ast.AST] = [n for n in self.tree.body if not _is_main_guard(n)]
        for node in self.tree.body:
            if _is_main_guard(node) and isinstance(node, ast.If):
                waiting.extend(node.orelse)
        while waiting:
            node = waiting.pop(0)
            yield node
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
                waiting.extend(ast.iter_child_nodes(node))

    def within(self, scope: Scope) -> Iterator[ast.AST]:
        """Every node of a function, or of the module outside its functions."""
        if scope is not None:
            yield from ast.walk(scope)
            return
        waiting: list[ast.AST] = list(self.tree.body)
        while waiting:
            node = waiting.pop(0)
            yield node
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                waiting.extend(ast.iter_child_nodes(node))

    def value_of(self, scope: Scope, name: str) -> Optional[ast.expr]:
        """What a name is assigned, with later changes such as m = compile(m)."""
        value: Optional[ast.expr] = None
        for where, target, given in self.assigned:
            if where is not scope or target != name:
                continue
            if name not in _names(given):
                value = value or given
            elif value is not None:
                value = _replaced(given, name, value)
        if value is None and scope is not None:
            return self.value_of(None, name)
        return value

    def portable(self, value: ast.expr, scope: Scope, keep: str = "") -> Optional[str]:
        """The expression as it may stand in the module; None: it needs local values."""
        value = copy.deepcopy(value)
        for _ in range(5):
            foreign = [n for n in _names(value) if not self._known(n) and n != keep]
            if not foreign:
                return ast.unparse(value)
            for name in foreign:
                found = self._local(scope, name)
                if found is None or _makes_layers(found):
                    return None
                value = _replaced(value, name, found)
        return None

    def _known(self, name: str) -> bool:
        builtin = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
        return name in self.names or name in builtin

    def _local(self, scope: Scope, name: str) -> Optional[ast.expr]:
        if scope is not None and name in _defaults(scope):
            return _defaults(scope)[name]
        return self.value_of(scope, name)

    def calls(self) -> Iterator[tuple[Scope, ast.Call]]:
        for scope in (*self.functions.values(), None):
            for node in self.within(scope):
                if isinstance(node, ast.Call):
                    yield scope, node


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in _names(node.test)


def _names(node: ast.AST) -> list[str]:
    """Free names, in order; those that a lambda or comprehension binds left out."""
    bound: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.arg):
            bound.add(n.arg)
        elif isinstance(n, ast.comprehension):
            bound.update(m.id for m in ast.walk(n.target) if isinstance(m, ast.Name))
    found = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(found) if name not in bound]


def _replaced(value: ast.expr, name: str, by: ast.expr) -> ast.expr:
    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(by) if node.id == name else node

    changed: ast.expr = Put().visit(copy.deepcopy(value))
    return changed


def _makes_layers(value: ast.expr) -> bool:
    """Whether a second copy of the expression would be another layer or tensor."""
    return any(
        isinstance(n, ast.Call) and _last(n.func) in ("Input", "Dense", "Conv2D")
        for n in ast.walk(value)
    )


def _last(func: ast.expr) -> str:
    """The last name of a.b.c."""
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _owner(func: ast.expr) -> str:
    """`a` of a.b."""
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        return func.value.id
    return ""


def _parameters(function: Function) -> list[str]:
    return [a.arg for a in [*function.args.posonlyargs, *function.args.args]]


def _defaults(function: Function) -> dict[str, ast.expr]:
    names, given = _parameters(function), function.args.defaults
    named = dict(zip(names[len(names) - len(given) :], given))
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults):
        if default is not None:
            named[argument.arg] = default
    return named


def _required(function: Function) -> list[str]:
    defaults = _defaults(function)
    return [name for name in _parameters(function) if name not in defaults]


def _methods(node: ast.AST) -> set[str]:
    return {
        n.func.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }


def _trains(node: ast.AST) -> bool:
    methods = _methods(node)
    return "fit" in methods or "apply_updates" in methods or "backward" in methods


class Check:
    """What is found, and the lines that mend it."""

    def __init__(self, script: Script, framework: str) -> None:
        self.script = script
        self.framework = framework
        self.problems: list[dict[str, Any]] = []
        self.missing: list[str] = []
        self.lines: list[str] = []
        self.unsolved: list[str] = []
        self.notes: list[str] = []

    def has(self, name: str) -> bool:
        return name in self.script.names

    def problem(self, node: ast.AST, text: str, remedy: str) -> None:
        line = getattr(node, "lineno", 1)
        if all(found["line"] != line for found in self.problems):
            self.problems.append({"line": line, "text": text, "remedy": remedy})

    def needs(self, name: str, line: Optional[str], otherwise: str) -> None:
        """A definition that is missing, the line that adds it, or what to write."""
        self.missing.append(name)
        if line is not None:
            self.lines.append(line)
        else:
            self.unsolved.append(otherwise)

    def takes(self, name: str, count: int) -> None:
        """A function of the script must be callable with so many arguments."""
        function = self.script.functions.get(name)
        if function is None or function.args.vararg:
            return
        required = _required(function)
        if len(required) > count:
            wanted = ", ".join(required[count:])
            self.problem(
                function,
                f"{name}() is called with {count} arguments, and needs {wanted} too",
                f"give {wanted} a default: {required[count]}=...",
            )

    # What runs at import.

    def import_time(self) -> None:
        guard = 'put `if __name__ == "__main__":` before this line, and indent it'
        for node in self.script.at_import():
            if isinstance(node, (ast.For, ast.While, ast.With)) and _trains(node):
                self.problem(node, "this trains when the script is imported", guard)
                return
            if not isinstance(node, ast.Call):
                continue
            name = _last(node.func)
            called = self.script.functions.get(name)
            if name == "fit" or (called is not None and self._reaches(called, set())):
                self.problem(node, "this trains when the script is imported", guard)
            elif name in ("parse_args", "parse_known_args"):
                self.problem(
                    node,
                    "this reads the command line, which a contender has not",
                    guard,
                )
            elif name == "input" and isinstance(node.func, ast.Name):
                self.problem(node, "this waits for somebody to type", guard)
            elif name in _DOWNLOADS or _says(node, "download", True):
                self.problem(
                    node,
                    "this reads from the network when the script is imported",
                    guard + ": a contender's data comes from the recipe",
                )
        for node in self.script.at_import():
            if (
                isinstance(node, ast.Subscript)
                and ast.unparse(node.value) == "sys.argv"
            ):
                self.problem(
                    node,
                    "this reads the command line, which a contender has not",
                    guard,
                )

    def _reaches(self, function: Function, seen: set[str]) -> bool:
        """Whether a function trains, or calls one that does."""
        if function.name in seen:
            return False
        seen.add(function.name)
        if any(
            isinstance(n, (ast.For, ast.While)) and _trains(n)
            for n in ast.walk(function)
        ):
            return True
        if "fit" in _methods(function):
            return True
        called = [
            self.script.functions[_last(n.func)]
            for n in ast.walk(function)
            if isinstance(n, ast.Call) and _last(n.func) in self.script.functions
        ]
        return any(self._reaches(other, seen) for other in called)

    def result(self) -> dict[str, Any]:
        return {
            "framework": self.framework,
            "problems": sorted(self.problems, key=lambda found: found["line"]),
            "missing": self.missing,
            "lines": self.lines,
            "unsolved": self.unsolved,
            "notes": self.notes,
        }


def _says(call: ast.Call, keyword: str, value: object) -> bool:
    return any(
        k.arg == keyword
        and isinstance(k.value, ast.Constant)
        and k.value.value is value
        for k in call.keywords
    )


# PyTorch.


class TorchCheck(Check):
    def run(self) -> None:
        scope, optimizer, model = self._optimizer()
        if not self.has("make_model"):
            line = self._make_model(scope, model)
            self.needs(
                "make_model()",
                line,
                "def make_model(): return the nn.Module, on its device",
            )
        if not self.has("make_optimizer"):
            self.needs(
                "make_optimizer(model)",
                optimizer,
                "def make_optimizer(model): return the optimizer of model.parameters()",
            )
        if not any(map(self.has, ("train_step", "train_epoch", "loss_fn"))):
            self.needs(
                "train_epoch(model, optimizer, batches)",
                self._train_function() or self._loss(),
                "def train_epoch(model, optimizer, batches): one step on each "
                "batch; or loss_fn(output, target)",
            )
        self.takes("make_model", 0)
        self.takes("make_optimizer", 1)
        self.takes("train_epoch", 3)

    def _optimizer(self) -> tuple[Scope, Optional[str], str]:
        """Where it is made, the line that makes it, and the name of its model."""
        for function in self.script.functions.values():
            parameters = _parameters(function)
            for node in ast.walk(function):
                made = (
                    _parameters_of(node.value) if isinstance(node, ast.Return) else ""
                )
                if made and made in parameters and _required(function) == [made]:
                    line = f"make_optimizer = {function.name}"
                    for scope, call in self.script.calls():
                        if _last(call.func) == function.name and call.args:
                            return scope, line, ast.unparse(call.args[0])
                    return None, line, ""
        for scope, _, value in self.script.assigned:
            model = _parameters_of(value)
            if not model:
                continue
            text = self.script.portable(
                _replaced(value, model, ast.Name("model", ast.Load())), scope, "model"
            )
            line = f"def make_optimizer(model): return {text}" if text else None
            return scope, line, model
        return None, None, ""

    def _make_model(self, scope: Scope, name: str) -> Optional[str]:
        value = self.script.value_of(scope, name) if name else None
        if isinstance(value, ast.Call):
            function = self.script.functions.get(_last(value.func))
            if function is not None and not value.args and not value.keywords:
                return f"make_model = {function.name}"
        if value is not None:
            text = self.script.portable(value, scope)
            if text is not None:
                return f"def make_model(): return {text}"
        for kind in reversed(self.script.classes.values()):
            bases = [_last(base) for base in kind.bases]
            made = [n for n in kind.body if isinstance(n, ast.FunctionDef)]
            init = next((n for n in made if n.name == "__init__"), None)
            if "Module" in bases and (init is None or len(_required(init)) == 1):
                return f"def make_model(): return {kind.name}()"
        return None

    def _train_function(self) -> Optional[str]:
        """The script's own function that trains an epoch or a step, called."""
        for function in self.script.functions.values():
            methods = _methods(function)
            if not {"backward", "step"} <= methods:
                continue
            loops = [n for n in ast.walk(function) if isinstance(n, ast.For)]
            parameters = _parameters(function)
            loader = next(
                (
                    n
                    for loop in loops
                    for n in _names(loop.iter)
                    if n in parameters and _trains(loop) and not _is_range(loop.iter)
                ),
                "",
            )
            line = self._call(function, loader)
            if line is not None:
                return line
        return None

    def _call(self, function: Function, loader: str) -> Optional[str]:
        roles = _roles(function)
        if "optimizer" not in roles.values() or "model" not in roles.values():
            return None
        if loader:
            roles[loader] = "batches"
            head = "train_epoch(model, optimizer, batches)"
        elif any(
            isinstance(n, (ast.For, ast.While)) and _trains(n)
            for n in ast.walk(function)
        ):
            return None
        else:
            rest = [p for p in _required(function) if p not in roles]
            roles.update({p: p for p in rest})
            if not rest or not any(
                isinstance(n, ast.Return) and n.value is not None
                for n in ast.walk(function)
            ):
                return None
            head = f"train_step(model, optimizer, {', '.join(rest)})"
        arguments = []
        for parameter in _parameters(function):
            given = self._argument(function, parameter, roles)
            if given is None and parameter in _required(function):
                return None
            if given is not None:
                arguments.append(
                    given
                    if parameter in _required(function)
                    else f"{parameter}={given}"
                )
        return f"def {head}: return {function.name}({', '.join(arguments)})"

    def _argument(
        self, function: Function, name: str, roles: dict[str, str]
    ) -> Optional[str]:
        """What a parameter of the training function gets; None: its default."""
        if (
            roles.get(name) in ("model", "optimizer", "batches")
            or roles.get(name) == name
        ):
            return roles[name]
        for node in ast.walk(function):  # passes over the data
            if (
                isinstance(node, ast.For)
                and _is_range(node.iter)
                and name in _names(node.iter)
            ):
                return "1"
        if name not in _required(function):
            return None
        index = _parameters(function).index(name)
        for scope, call in self.script.calls():
            if _last(call.func) != function.name:
                continue
            given = call.args[index] if index < len(call.args) else None
            given = next((k.value for k in call.keywords if k.arg == name), given)
            if given is not None:
                text = self.script.portable(given, scope)
                if text is not None:
                    return text
        return {"device": '"cpu"', "epoch": "0"}.get(name)

    def _loss(self) -> Optional[str]:
        """The function that makes what ``backward`` is called on."""
        for scope in (*self.script.functions.values(), None):
            nodes = list(self.script.within(scope))
            backward = [
                _owner(n.func)
                for n in nodes
                if isinstance(n, ast.Call) and _last(n.func) == "backward"
            ]
            for node in nodes:
                if not isinstance(node, ast.Assign) or not isinstance(
                    node.value, ast.Call
                ):
                    continue
                if not any(_last(target) in backward for target in node.targets):
                    continue
                call = node.value
                if len(call.args) != 2:
                    continue
                more = "".join(f", {ast.unparse(k)}" for k in call.keywords)
                function = self.script.portable(call.func, scope)
                if function is None:
                    continue
                if more:
                    function = (
                        f"lambda output, target: {function}(output, target{more})"
                    )
                self.notes.append(
                    "your own loop is not called: what is raced is zero_grad(), loss, "
                    "backward() and step() on each batch. A function of its own that "
                    "takes model, optimizer and batches would be raced as it is"
                )
                return f"loss_fn = {function}"
        return None


def _parameters_of(value: Optional[ast.expr]) -> str:
    """`net` of optim.SGD(net.parameters(), lr=0.1)."""
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    first = value.args[0]
    if isinstance(first, ast.Call) and _last(first.func) == "parameters":
        return _owner(first.func)
    return ""


def _is_range(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _last(value.func) in ("range", "trange")


def _roles(function: Function) -> dict[str, str]:
    """Which parameters are the model and the optimizer, by what is done to them."""
    parameters = _parameters(function)
    roles: dict[str, str] = {}
    called: list[str] = []
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        owner, name = _owner(node.func), _last(node.func)
        if owner in parameters and name == "zero_grad":
            roles.setdefault(owner, "optimizer")
        elif owner in parameters and name in ("train", "eval", "parameters"):
            roles.setdefault(owner, "model")
        elif name in parameters and isinstance(node.func, ast.Name):
            called.append(name)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or _last(node.func) != "step":
            continue
        if _owner(node.func) in parameters and "optimizer" not in roles.values():
            roles[_owner(node.func)] = "optimizer"
    if "model" not in roles.values():
        losses = [n for n in called if "loss" in n.lower() or "crit" in n.lower()]
        for name in called:
            if name not in losses and name not in roles:
                roles[name] = "model"
                break
    return roles


# Keras.


class KerasCheck(Check):
    def run(self) -> None:
        scope, model = self._model()
        compiled = "compile" in _methods(self.script.tree)
        if not self.has("build_model"):
            self.needs(
                "build_model()",
                self._build_model(scope, model),
                "def build_model(): the lines that make the model, and return it",
            )
        if not self.has("compile_model") and not self._compiled(scope, model):
            self.needs(
                "compile_model(model)",
                self._compile(),
                "def compile_model(model): model.compile(...)"
                if compiled
                else "def compile_model(model): model.compile(optimizer=..., loss=...)",
            )
        self.takes("build_model", 0)
        self.takes("compile_model", 1)
        self.takes("fit", 5)

    def _model(self) -> tuple[Scope, str]:
        """The name on which ``fit`` or ``compile`` is called, and where."""
        for wanted in ("fit", "compile"):
            for scope, call in self.script.calls():
                if _last(call.func) == wanted and _owner(call.func):
                    return scope, _owner(call.func)
        return None, ""

    def _makers(self) -> list[Function]:
        """Functions without required arguments that return a model."""
        return [
            function
            for function in self.script.functions.values()
            if not _required(function)
            and any(isinstance(n, ast.Return) and n.value for n in ast.walk(function))
            and ({"Model", "Sequential"} | set(self.script.classes))
            & {_last(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)}
        ]

    def _build_model(self, scope: Scope, name: str) -> Optional[str]:
        if scope is None and self.has(name):
            return f"def build_model(): return {name}"
        value = self.script.value_of(scope, name) if name else None
        if isinstance(value, ast.Call):
            function = self.script.functions.get(_last(value.func))
            if function is not None and not value.args and not value.keywords:
                return f"build_model = {function.name}"
            text = self.script.portable(value, scope)
            if text is not None:
                return f"def build_model(): return {text}"
        makers = self._makers()
        return f"build_model = {makers[0].name}" if len(makers) == 1 else None

    def _compiled(self, scope: Scope, name: str) -> bool:
        """Whether what build_model gives is compiled already."""
        value = self.script.value_of(scope, name) if name else None
        maker = None
        if isinstance(value, ast.Call):
            maker = self.script.functions.get(_last(value.func))
        maker = self.script.functions.get("build_model", maker)
        if maker is not None:
            given = [n.value for n in ast.walk(maker) if isinstance(n, ast.Return)]
            name = next((n.id for n in given if isinstance(n, ast.Name)), "")
            if "compile" in _methods(maker):
                return True
        return name in self.script.names and any(
            isinstance(n, ast.Call)
            and _last(n.func) == "compile"
            and _owner(n.func) == name
            for n in self.script.at_import()
        )

    def _compile(self) -> Optional[str]:
        for scope, call in self.script.calls():
            if _last(call.func) != "compile" or not _owner(call.func):
                continue
            model = ast.Name("model", ast.Load())
            moved = _replaced(call, _owner(call.func), model)
            text = self.script.portable(moved, scope, "model")
            if text is not None:
                return f"def compile_model(model): {text}"
        return None


# JAX.


class JaxCheck(Check):
    def run(self) -> None:
        loss, step = self._loss(), self._step()
        if not self.has("loss_fn"):
            self.needs(
                "loss_fn(params, *inputs)",
                f"loss_fn = {loss}" if loss else None,
                "def loss_fn(params, *inputs): return the mean loss of the batch",
            )
        if not self.has("forward"):
            forward = self._forward(self.script.functions.get(loss or "loss_fn"))
            self.needs(
                "forward(params, *inputs)",
                f"forward = {forward}" if forward else None,
                "def forward(params, *inputs): return what the loss is computed from",
            )
        if not self.has("train_step"):
            self.needs(
                "train_step(params, opt_state, *batch)",
                f"train_step = {step}" if step else None,
                "a function train_step(params, opt_state, *batch) that returns params, "
                "opt_state and loss",
            )
        if not self.has("init_params") and not self.has("init_state"):
            self.needs(
                "init_params(key)",
                None,
                "def init_params(key): return a dict of arrays",
            )
        if not self.has("make_optimizer") and len(self._optimizers()) != 1:
            self.needs(
                "an optimizer",
                None,
                "OPTIMIZER = optax....: in the module, and used by train_step",
            )

    def _optimizers(self) -> list[str]:
        return [
            name
            for scope, name, value in self.script.assigned
            if scope is None
            and isinstance(value, ast.Call)
            and ast.unparse(value.func).startswith("optax.")
        ]

    def _loss(self) -> Optional[str]:
        """`loss` of jax.value_and_grad(loss)."""
        for _, call in self.script.calls():
            if _last(call.func) in ("value_and_grad", "grad") and call.args:
                name = _last(call.args[0])
                if name in self.script.functions:
                    return name
        return None

    def _forward(self, loss: Optional[Function]) -> Optional[str]:
        """The function that the loss calls with its own first argument."""
        if loss is None or not _parameters(loss):
            return None
        for node in ast.walk(loss):
            if isinstance(node, ast.Call) and _last(node.func) in self.script.functions:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Name) and first.id == _parameters(loss)[0]:
                    return _last(node.func)
        return None

    def _step(self) -> Optional[str]:
        """A function of params, opt_state and a batch that gives three values."""
        for function in self.script.functions.values():
            called = {
                _last(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)
            }
            gives = [
                len(n.value.elts)
                for n in ast.walk(function)
                if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)
            ]
            if {"update", "apply_updates"} <= called and gives == [3]:
                return function.name if len(_parameters(function)) >= 3 else None
        return None


_CHECKS = {
    "torch": TorchCheck,
    "keras": KerasCheck,
    "keras2": KerasCheck,
    "jax": JaxCheck,
}


def framework_of(script: Script) -> str:
    """By the packages that the script imports; empty: none of them."""
    found = set()
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.partition(".")[0])
            if node.module == "tensorflow":
                found |= {a.name for a in node.names if a.name == "keras"}
            if node.module.startswith("tensorflow.keras"):
                found.add("keras")
    return next((name for word, name in _FRAMEWORKS.items() if word in found), "")


def check(path: str, framework: str = "") -> dict[str, Any]:
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    try:
        script = Script(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        found = {
            "line": getattr(error, "lineno", None) or 1,
            "text": f"not valid Python: {getattr(error, 'msg', error)}",
            "remedy": "correct it first",
        }
        return {"framework": framework, "problems": [found], "invalid": True}
    framework = framework or framework_of(script)
    kind = _CHECKS.get(framework)
    if kind is None:
        return {"framework": framework}
    checked = kind(script, framework)
    checked.import_time()
    checked.run()
    return checked.result()


if __name__ == "__main__":
    print(json.dumps(check(*sys.argv[1:])))
