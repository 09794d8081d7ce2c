"""A Python script as its source tells, for `bakeoff check`: nothing of it is run."""

from __future__ import annotations

import ast
import copy
from typing import Iterator, Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Scope = Optional[Function]  # None: the module outside its functions
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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
            elif isinstance(node, _DEFINITIONS):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id

    def at_import(self) -> Iterator[ast.AST]:
        """Nodes that run when the script is imported, functions and classes as one."""
        waiting: list[ast.AST] = []
        for statement in self.tree.body:
            if isinstance(statement, ast.If) and "__name__" in free_names(
                statement.test
            ):
                waiting.extend(statement.orelse)
            else:
                waiting.append(statement)
        yield from _walk(waiting, (*_DEFINITIONS, ast.Lambda))

    def within(self, scope: Scope) -> Iterator[ast.AST]:
        """Every node of a function, or of the module outside its functions."""
        if scope is not None:
            yield from ast.walk(scope)
        else:
            yield from _walk(list(self.tree.body), _DEFINITIONS)

    def value_of(self, scope: Scope, name: str) -> Optional[ast.expr]:
        """What a name is assigned, with later changes such as m = compile(m)."""
        value: Optional[ast.expr] = None
        for where, target, given in self.assigned:
            if where is not scope or target != name:
                continue
            if name not in free_names(given):
                value = value or given
            elif value is not None:
                value = replaced(given, name, value)
        if value is None and scope is not None:
            return self.value_of(None, name)
        return value

    def portable(self, value: ast.expr, scope: Scope, keep: str = "") -> Optional[str]:
        """The expression as it may stand in the module; None: it needs local values."""
        value = copy.deepcopy(value)
        for _ in range(5):
            foreign = [n for n in free_names(value) if not self._known(n) and n != keep]
            if not foreign:
                return ast.unparse(value)
            for name in foreign:
                found = self._local(scope, name)
                if found is None or _makes_layers(found):
                    return None
                value = replaced(value, name, found)
        return None

    def _known(self, name: str) -> bool:
        builtin = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
        return name in self.names or name in builtin

    def _local(self, scope: Scope, name: str) -> Optional[ast.expr]:
        if scope is not None and name in defaults_of(scope):
            return defaults_of(scope)[name]
        return self.value_of(scope, name)

    def calls(self) -> Iterator[tuple[Scope, ast.Call]]:
        for scope in (*self.functions.values(), None):
            for node in self.within(scope):
                if isinstance(node, ast.Call):
                    yield scope, node

    def called_in(self, node: ast.AST) -> list[Function]:
        """Functions of the script that are called there."""
        names = [last_name(call.func) for call in calls_in(node)]
        return [self.functions[name] for name in names if name in self.functions]


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


def returned_by(function: Function) -> list[ast.expr]:
    """The values of its `return` statements."""
    returns = (n for n in ast.walk(function) if isinstance(n, ast.Return))
    return [n.value for n in returns if n.value is not None]


def _walk(waiting: list[ast.AST], closed: tuple[type, ...]) -> Iterator[ast.AST]:
    """Nodes and what is in them, but not what is in those of the kinds `closed`."""
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, closed):
            waiting.extend(ast.iter_child_nodes(node))


def free_names(node: ast.AST) -> list[str]:
    """Free names, in order; those that a lambda or comprehension binds left out."""
    bound: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.arg):
            bound.add(n.arg)
        elif isinstance(n, ast.comprehension):
            bound.update(m.id for m in ast.walk(n.target) if isinstance(m, ast.Name))
    found = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(found) if name not in bound]


def replaced(value: ast.expr, name: str, by: ast.expr) -> ast.expr:
    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(by) if node.id == name else node

    changed: ast.expr = Put().visit(copy.deepcopy(value))
    return changed


def _makes_layers(value: ast.expr) -> bool:
    """Whether a second copy of the expression would be another layer or tensor."""
    layers = ("Input", "Dense", "Conv2D")
    return any(last_name(call.func) in layers for call in calls_in(value))


def last_name(func: ast.expr) -> str:
    """The last name of a.b.c."""
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def owner_name(func: ast.expr) -> str:
    """`a` of a.b."""
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        return func.value.id
    return ""


def parameters_of(function: Function) -> list[str]:
    return [a.arg for a in [*function.args.posonlyargs, *function.args.args]]


def defaults_of(function: Function) -> dict[str, ast.expr]:
    names, given = parameters_of(function), function.args.defaults
    named = dict(zip(names[len(names) - len(given) :], given))
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults):
        if default is not None:
            named[argument.arg] = default
    return named


def required_of(function: Function) -> list[str]:
    defaults = defaults_of(function)
    return [name for name in parameters_of(function) if name not in defaults]


def methods_in(node: ast.AST) -> set[str]:
    """The names of methods that are called there."""
    functions = (call.func for call in calls_in(node))
    return {f.attr for f in functions if isinstance(f, ast.Attribute)}


def trains(node: ast.AST) -> bool:
    return not methods_in(node).isdisjoint({"fit", "apply_updates", "backward"})
