"""A Python script as its source tells, for `bakeoff check`: nothing of it is run.

Running a script to look at it would train, download or overwrite something, so all that
is known is its syntax tree. What is asked: which parts run at import, what a name was
last assigned, what the script's own calls pass for a parameter, and whether an
expression may be moved to the top of the module without losing what it refers to.
Answers are None where the text alone does not say; the caller must then leave the user
to write that part.
"""

from __future__ import annotations

import ast
import collections
import copy
import itertools
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
        self._calls = [
            (scope, node)
            for scope in (*self.functions.values(), None)
            for node in self.within(scope)
            if isinstance(node, ast.Call)
        ]
        self._does: dict[
            int, tuple[set[str], set[str]]
        ] = {}  # methods, calls of a node
        self._calls_of: dict[str, list[tuple[Scope, ast.Call]]] = {}
        for found in self._calls:
            self._calls_of.setdefault(last_name(found[1].func), []).append(found)
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

    def portable(
        self, value: ast.expr, scope: Scope, keep: str = "", depth: int = 0
    ) -> Optional[str]:
        """The expression as it may stand in the module; None: it needs local values."""
        value = copy.deepcopy(value)
        for _ in range(5):
            foreign = [n for n in free_names(value) if not self._known(n) and n != keep]
            if not foreign:
                return ast.unparse(value)
            for name in foreign:
                found = self._local(scope, name, depth)
                if found is None or _makes_layers(found):
                    return None
                value = _NamespaceRead().visit(replaced(value, name, found))
        return None

    def _known(self, name: str) -> bool:
        builtin = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
        return name in self.names or name in builtin

    def _local(self, scope: Scope, name: str, depth: int) -> Optional[ast.expr]:
        if scope is not None and name in defaults_of(scope):
            return defaults_of(scope)[name]
        value = self.value_of(scope, name)
        if isinstance(value, ast.Call) and last_name(value.func) == "parse_args":
            return self._default_arguments()
        if value is None and scope is not None and depth < 3:
            for where, given in itertools.islice(self.given(scope, name), 4):
                text = self.portable(given, where, depth=depth + 1)
                if text is not None:
                    return ast.parse(text, mode="eval").body
        return value

    def given(self, function: Function, name: str) -> Iterator[tuple[Scope, ast.expr]]:
        """What the script's own calls give for a parameter, and where they are."""
        names = parameters_of(function)
        for scope, call in self.calls_of(function.name):
            given = dict(zip(names, call.args))
            given.update({k.arg: k.value for k in call.keywords if k.arg})
            if name in given:
                yield scope, given[name]

    def _default_arguments(self) -> ast.expr:
        """argparse.Namespace(...) with the defaults that `add_argument` is given."""
        texts = []
        for _, call in self.calls():
            if last_name(call.func) != "add_argument":
                continue
            stated = {k.arg: k.value for k in call.keywords}
            action = _text(stated.get("action"))
            flags = [text for text in map(_text, call.args) if text.startswith("-")]
            named = max(flags, key=lambda flag: flag.startswith("--"), default="")
            name = _text(stated.get("dest")) or named.lstrip("-").replace("-", "_")
            default = ast.unparse(stated.get("default", ast.Constant(None)))
            if "default" not in stated and action in ("store_true", "store_false"):
                default = str(action == "store_false")
            if name.isidentifier():
                texts.append(f"{name}={default}")
        module = "argparse" if "argparse" in self.names else '__import__("argparse")'
        text = f"{module}.Namespace({', '.join(texts)})"
        return ast.parse(text, mode="eval").body

    def calls(self) -> list[tuple[Scope, ast.Call]]:
        """Every call outside of classes, and the function that makes it."""
        return self._calls

    def calls_of(self, name: str) -> list[tuple[Scope, ast.Call]]:
        return self._calls_of.get(name, [])

    def trains(self, node: ast.AST) -> bool:
        """Whether a training step runs there, or in what is called there."""
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if id(node) not in self._does:
                called = {last_name(call.func) for call in calls_in(node)}
                self._does[id(node)] = methods_in(node), called
            methods, called = self._does[id(node)]
            if not methods.isdisjoint({"fit", "apply_updates", "backward"}):
                return True
            called = called - seen
            seen |= called
            waiting.extend(self.functions[n] for n in called if n in self.functions)
        return False

    def made(self, *bases: str) -> Optional[str]:
        """The text that makes an object of a class of the script with such a base."""
        kinds = {
            name: kind
            for name, kind in self.classes.items()
            if not {last_name(base) for base in kind.bases}.isdisjoint(bases)
        }
        for scope, call in self.calls():
            if last_name(call.func) in kinds:
                text = self.portable(call, scope)
                if text is not None:
                    return text
        for name, kind in reversed(kinds.items()):
            functions = [n for n in kind.body if isinstance(n, ast.FunctionDef)]
            init = next((f for f in functions if f.name == "__init__"), None)
            if init is None or len(required_of(init)) == 1:
                return f"{name}()"
        return None


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


def returned_by(function: Function) -> list[ast.expr]:
    """The values of its `return` statements."""
    returns = (n for n in ast.walk(function) if isinstance(n, ast.Return))
    return [n.value for n in returns if n.value is not None]


def _walk(nodes: list[ast.AST], closed: tuple[type, ...]) -> Iterator[ast.AST]:
    """Nodes and what is in them, but not what is in those of the kinds `closed`."""
    waiting = collections.deque(nodes)
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, closed):
            waiting.extend(ast.iter_child_nodes(node))


def free_names(node: ast.AST) -> list[str]:
    """Free names, in order, without those bound by a lambda or comprehension."""
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


def _text(node: Optional[ast.expr]) -> str:
    """Of a literal string; empty if it is not one."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


class _NamespaceRead(ast.NodeTransformer):
    """Namespace(lr=0.1).lr is 0.1."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.value, ast.Call)
            and last_name(node.value.func) == "Namespace"
        ):
            for keyword in node.value.keywords:
                if keyword.arg == node.attr:
                    return keyword.value
        return node
