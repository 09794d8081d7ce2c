"""From a module to IR text.

One export is not enough: dropout and batch norm differ between training and inference,
and a model may branch on the mode. So the module is exported in both, each program is
mapped by itself, and the two graphs must be equal but for these ops. What an export
would silently leave out (hidden parameters, hooks that change gradients, weights that
share memory in part, a forward that changes its own weights) is looked for before it,
because no comparison of two exports would show it. All of this only finds reasons to
refuse in words that name the user's line; that the result is right is shown by the
proof alone.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import re
import warnings
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional, Sequence

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode

import bakeoff_import.complexes
import bakeoff_import.layers
import bakeoff_import.noise
import bakeoff_import.places  # noqa: F401
from bakeoff_import.assignments import functional_assignments
from bakeoff_import.counting import filled
from bakeoff_import.float64 import (
    Float64,
    WithoutDropout,
    as_if_called,
    experts,
    float64_by_default,
    followed_functions,
    gradients_of,
    in_float64,
    masks_as_given,
    seen_functions,
    users_line,
)
from bakeoff_import.graph import Graph, Names, Node, ir_word
from bakeoff_import.mapping import InPlaceOnView, Mapper, Origin, changes_parameter
from bakeoff_import.modes import IN_BOTH_MODES, same_graphs
from bakeoff_import.origin import user_place
from bakeoff_import.outputs import Outputs
from bakeoff_import.packed import padded_sequences
from bakeoff_import.patterns import (
    packed_projections,
    spelled_norms,
    undone_selections,
    undone_transpositions,
)
from bakeoff_import.problems import (
    ImportProblem,
    Refused,
    Unsupported,
    is_users,
)
from bakeoff_import.rows import ROWS
from bakeoff_import.selections import Selecting, with_all_rows
from bakeoff_import.sizes import kept_symbolic
from bakeoff_import.values import N, Shape, Value
from bakeoff_import.writing import InputSpec

MOST_ROWS = 512  # that branches on the batch size are compared for
MOST_BRANCHES = 4  # ranges of batch sizes besides the first
_INPUTS = "give each --input the type and sizes that forward takes, the batch first"
_FIXED = "use x.shape[0] (or -1) where the batch size is written as a number"
_NO_KEY = (
    "where a mask leaves an attention no key, torch gives 0 and the import the mean of "
    "all values: keep one key in every row"
)
_TWO_BIASES = (
    "the two biases of each LSTM become one, their sum: its gradient is that of each, "
    "so plain SGD moves the sum half as far as it moves in torch"
)


def drawn(spec: InputSpec, rows: int) -> Any:
    """An input of this type."""
    sizes = (rows, *spec.shape[1:])
    if spec.dtype != "f32":
        whole = torch.bool if spec.dtype == "bool" else torch.int64
        return torch.zeros(sizes, dtype=whole)
    generator = torch.Generator().manual_seed(1)
    return torch.randn(sizes, generator=generator, dtype=torch.float64)


@dataclass
class Exported:
    """The import, before its proof."""

    graph: Graph
    nodes: list[Node]
    output: Value
    inputs: dict[str, tuple[str, Shape]]  # IR name -> dtype, IR shape
    running: dict[str, str]
    program: Any = None
    mapper: Any = None
    notes: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)  # the origin's tensors that it reads


def _modules(found: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, whose own code computes in float64 too. No copy: functions
    that it holds (hooks, lambdas) would still read the weights of the first."""
    for wrapper in ("_orig_mod", "module"):  # of torch.compile, of DataParallel
        inner = getattr(found, wrapper, None)
        if type(found).__module__.startswith("torch.") and isinstance(
            inner, torch.nn.Module
        ):
            found = inner
    return in_float64(filled(found))


def _still_norms(module: torch.nn.Module) -> list[str]:
    """Instance norms that are given in evaluation mode stay in it: no op of the IR
    takes each row's own statistics in training and running ones in inference."""
    still = []
    for key, part in module.named_modules():
        tracks = isinstance(part, torch.nn.modules.instancenorm._InstanceNorm)
        if tracks and part.track_running_stats and not part.training:
            part.train = lambda mode=True, part=part: part
            still.append(key)
    return still


def _overlap(one: Any, other: Any) -> bool:
    """Whether two tensors of one storage have addresses in common."""
    ends = []
    for tensor in (one, other):
        reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
        ends.append(tensor.data_ptr() + reach * tensor.element_size())
    return bool(one.data_ptr() < ends[1] and other.data_ptr() < ends[0])


def _refuse_parts_of_weights(module: torch.nn.Module) -> None:
    """Other tensors in the memory of a trained parameter move as it is trained.

    A copy of the module parts them: a buffer would stay as it is, and a parameter be
    trained by itself.
    """
    lazy = torch.nn.parameter.UninitializedTensorMixin
    named = dict(module.named_parameters())
    for path, part in module.named_modules():
        for name, tensor in {**part._buffers, **vars(part)}.items():
            if isinstance(tensor, torch.Tensor):
                named.setdefault(f"{path}.{name}".lstrip("."), tensor)
    held: dict[int, list[tuple[str, Any]]] = {}  # by their storage, weights first
    for key, tensor in named.items():
        if tensor.is_meta or isinstance(tensor, lazy) or tensor.numel() == 0:
            continue
        beside = held.setdefault(tensor.untyped_storage().data_ptr(), [])
        for other_key, other in beside:
            trained = tensor.requires_grad or other.requires_grad
            if trained and other is not tensor and _overlap(other, tensor):
                whole = isinstance(tensor, torch.nn.Parameter)
                whole = whole and other.numel() == tensor.numel()
                raise ImportProblem(
                    f"'{key}' shares {'' if whole else 'a part of '}its memory with "
                    f"'{other_key}'",
                    "tie the parameters themselves, one.weight = other.weight: an "
                    "optimizer moves two in turn"
                    if whole
                    else "compute it in forward, or clone() it if it is to be apart",
                )
        beside.append((key, tensor))


def _refuse_hidden(module: torch.nn.Module) -> None:
    """Parameters in a plain list or dict: no optimizer is given them, and no export."""
    known = {id(p) for p in module.parameters()}
    for path, part in module.named_modules():
        for name, held in vars(part).items():
            many = held.values() if isinstance(held, dict) else held
            if name.startswith("_") or not isinstance(held, (list, tuple, dict)):
                continue
            for one in many:
                inside = one.parameters() if isinstance(one, torch.nn.Module) else [one]
                own = [p for p in inside if isinstance(p, torch.nn.Parameter)]
                if any(id(p) not in known for p in own):
                    raise ImportProblem(
                        f"'{f'{path}.{name}'.lstrip('.')}' is a plain "
                        f"{type(held).__name__} of parameters, which "
                        "module.parameters() does not give",
                        "nn.ModuleList, nn.ParameterList or nn.ParameterDict",
                    )


def _refuse_by_sight(module: torch.nn.Module) -> None:
    """What an export would leave out, or fail at without saying why."""
    _refuse_hidden(module)
    for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.layout != torch.strided:
            raise ImportProblem(
                f"'{key}' is a sparse tensor, which the IR lacks",
                f"{key}.to_dense(), and torch.mm in the place of torch.sparse.mm",
            )
    for key, parameter in module.named_parameters():
        if getattr(parameter, "_backward_hooks", None):
            raise ImportProblem(
                f"'{key}' has a hook that changes its gradient, which no export keeps",
                "remove the hook: handle.remove()",
            )
    for key, part in module.named_modules():
        called = f"'{key}'" if key else "the model"
        if part._backward_hooks or part._backward_pre_hooks:
            raise ImportProblem(
                f"{called} has a backward hook, which no export keeps",
                "remove the hook: handle.remove()",
            )
        if isinstance(part, torch.jit.ScriptModule):
            raise ImportProblem(
                f"{called} is a ScriptModule, which has no Python code to export",
                "use the module that it was made from",
            )
        spelled = {type(hook).__name__ for hook in part._forward_pre_hooks.values()}
        spelled.add(type(part).__name__)
        if spelled & {"_SpectralNorm", "SpectralNorm"}:
            layer = called.partition(".parametrizations")[0].strip("'")
            raise ImportProblem(
                f"'{layer}' has spectral_norm, whose vectors change in every step",
                "torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight'), "
                "or torch.nn.utils.remove_spectral_norm(layer)",
            )
        if getattr(part, "momentum", 0) is None and isinstance(
            part, torch.nn.modules.batchnorm._BatchNorm
        ):
            raise ImportProblem(
                f"{called} averages its statistics over all steps (momentum=None)",
                "give batch norm a momentum: 0.1",
            )
    _refuse_parts_of_weights(module)


def _initialised(
    module: torch.nn.Module, specs: Sequence[InputSpec]
) -> torch.nn.Module:
    """Lazy layers get their sizes from one batch."""
    if any(torch.nn.parameter.is_lazy(p) for p in module.parameters()):
        tensors = [drawn(spec, 2) for spec in specs]
        tensors = [t.float() if t.is_floating_point() else t for t in tensors]
        args, kwargs = arguments(module, specs, tensors)
        with torch.no_grad():
            module(*args, **kwargs)
    return module


def input_names(module: torch.nn.Module, specs: Sequence[InputSpec]) -> list[str]:
    """The IR's names: those of the user, else of forward's parameters."""
    signature = inspect.signature(type(module).forward)
    order = [
        p.name
        for p in list(signature.parameters.values())[1:]
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if type(module).forward is torch.nn.Sequential.forward:
        order = ["x"]  # torch calls it input, which Python has a function for
    names, unique = [], Names()
    free = iter(n for n in order if n not in {s.name for s in specs})
    for i, spec in enumerate(specs):
        given = spec.name or next(free, f"x{i + 1}")
        names.append(unique.unique(ir_word(given)))
    return names


def arguments(
    module: torch.nn.Module, specs: Sequence[InputSpec], tensors: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional inputs, and named ones as keywords."""
    known = inspect.signature(type(module).forward).parameters
    args, kwargs = [], {}
    for spec, tensor in zip(specs, tensors):
        if not spec.name:
            args.append(tensor)
        elif spec.name in known or any(p.kind == p.VAR_KEYWORD for p in known.values()):
            kwargs[spec.name] = tensor
        else:
            raise ImportProblem(
                f"forward has no parameter '{spec.name}'",
                f"it has {', '.join(list(known)[1:])}",
            )
    return tuple(args), kwargs


def _signature(forward: Any, specs: Sequence[InputSpec]) -> inspect.Signature:
    """In which inputs that are keywords of ``**kwargs`` have names: torch.export takes
    those for one input and for several."""
    signature = inspect.signature(forward)
    own = list(signature.parameters.values())
    named = [p for p in own if p.kind != p.VAR_KEYWORD]
    if len(named) < len(own):
        given = [s.name for s in specs if s.name and s.name not in signature.parameters]
        named += [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in given]
    return signature.replace(parameters=named)


class Importer:
    """One module, its inputs, and what is exported of it."""

    def __init__(
        self,
        found: torch.nn.Module,
        specs: Sequence[InputSpec],
        folder: str,
        output: str = "",
        ops: Sequence[str] = (),
    ) -> None:
        self.ops = list(ops)
        self.specs = list(specs)
        self.folder = folder
        self.outputs = Outputs(output)
        _refuse_by_sight(found)
        self.counts = any(p.is_meta for p in found.parameters())  # and computes nothing
        self.module = _modules(_initialised(found, self.specs))
        self.still = _still_norms(self.module)
        self._give_one_output()
        self.padding: dict[str, int] = {}  # tables with a row that is 0 and stays so
        self.names = input_names(self.module, self.specs)
        self.keys = self._tied()
        self.exported: Optional[Exported] = None
        # Other programs than the first, by a batch size of theirs; they hold for up to
        # `compared` rows, 0: for any number.
        self.others: list[tuple[int, Any]] = []
        self.branches = False  # forward, on the batch size
        self.compared = 0
        self.selects = False  # rows by masks, which the import computes for all rows
        self.followed: set[str] = set()  # functions that are taken as their formulas

    def _give_one_output(self) -> None:
        forward = self.module.forward

        def one(*args: Any, **kwargs: Any) -> Any:
            made = self.outputs.of(self.module.training, forward(*args, **kwargs))
            return with_all_rows(made)

        one.__signature__ = _signature(forward, self.specs)  # type: ignore[attr-defined]
        self.module.forward = one
        self.module.eval()
        tensors = [drawn(spec, 2) for spec in self.specs]
        args, kwargs = arguments(self.module, self.specs, tensors)
        before = self._sums()
        with contextlib.suppress(Exception), torch.no_grad(), self._numbers():
            found = forward(*args, **kwargs)
            if not self.outputs.wanted:
                self.outputs.look(False, found)
        self._refuse_changes(before)

    def _sums(self) -> dict[str, str]:
        """Two sums of every parameter: they tell whether forward has changed it."""
        if self.counts:
            return {}
        own = self.module.named_parameters()
        return {k: f"{p.sum().item()} {p.square().sum().item()}" for k, p in own}

    def _refuse_changes(self, before: dict[str, str]) -> None:
        """A forward that sets weights by its first batch would have set them by drawn
        numbers, and the import would hold those."""
        for key, sums in self._sums().items():
            if sums != before.get(key, sums):
                said, remedy = changes_parameter(key)
                raise ImportProblem(f"the model {said}", remedy)

    def _numbers(self) -> contextlib.AbstractContextManager[Any]:
        """In which a model that is counted computes shapes alone."""
        if self.counts:
            return FakeTensorMode(allow_non_fake_inputs=True)  # type: ignore[no-any-return]
        return contextlib.nullcontext()

    # -- what the module holds

    def tensors(self) -> dict[str, Any]:
        """Parameters and buffers by name, persistent or not."""
        named = dict(self.module.named_parameters(remove_duplicate=False))
        named.update(self.module.named_buffers(remove_duplicate=False))
        return named

    def _tied(self) -> dict[str, str]:
        """Every name of a tensor -> its first name: tied tensors share memory."""
        first: dict[tuple[Any, ...], str] = {}
        storages: dict[int, tuple[Any, ...]] = {}
        keys = {}
        trained = dict(self.module.named_parameters(remove_duplicate=False))
        for key, tensor in self.tensors().items():
            if tensor.numel() == 0:
                keys[key] = key
                continue
            storage = tensor.untyped_storage().data_ptr()
            place = (
                storage,
                tensor.storage_offset(),
                tuple(tensor.shape),
                tensor.stride(),
            )
            keys[key] = first.setdefault(place, key)
            still = not (key in trained or re.search(r"\brunning_(mean|var)$", key))
            if still and storage not in storages:
                continue  # tables may be views of one: nothing changes them
            if storages.setdefault(storage, place) != place:
                raise ImportProblem(
                    f"'{key}' shares a part of its memory with "
                    f"'{first[storages[storage]]}'",
                    "tie whole tensors, or clone() the part",
                )
        return keys

    # -- export

    def _program(self, train: bool) -> Any:
        self.module.train(train)
        # Batch sizes of 0 and 1 are special to torch; any other stands for all.
        rows = max(3, min(self.specs[0].shape[0], 8))
        batch = torch.export.Dim("N", min=2, max=1 << 20)
        args, kwargs, dynamic = self._given(rows, batch)
        if self.branches:  # the other mode does, so this one will
            with contextlib.suppress(Exception):
                return self._branching(rows)
        try:
            return self._traced(args, kwargs, dynamic)
        except ImportProblem:
            raise
        except Exception as error:
            problem = self._failure(args, kwargs)
            text = f"{type(error).__name__}: {error}"
            if problem is None and _FIXES.search(text):
                whole = functools.partial(self._traced, args, kwargs, dynamic)
                branching = functools.partial(self._branching, rows)
                tries = [(True, whole), (False, branching), (True, branching)]
                if _BRANCHES in text:
                    tries = [(False, branching), (True, whole), (True, branching)]
                for symbolic, trace in tries:
                    with contextlib.ExitStack() as stack:
                        stack.enter_context(contextlib.suppress(Exception))
                        if symbolic:
                            stack.enter_context(kept_symbolic(self.module, self.folder))
                        return trace()
            if problem is None and not _DATA_DEPENDENT.search(text):
                with contextlib.suppress(Exception), as_if_called():
                    return self._traced(args, kwargs, dynamic)
            raise problem or _explained(error, self.folder, train) from error

    def _given(self, rows: int, axis: Any) -> tuple[Any, Any, Any]:
        """Drawn inputs, and dynamic shapes whose axis 0 is `axis`."""
        tensors = [drawn(spec, rows) for spec in self.specs]
        args, kwargs = arguments(self.module, self.specs, tensors)
        shapes = (tuple({0: axis} for _ in args), {key: {0: axis} for key in kwargs})
        return args, kwargs, _dynamic(self.module, args, kwargs, shapes)

    def _branching(self, rows: int) -> Any:
        """Where forward branches on the batch size: the program at this size. Those of
        all other sizes, range after range, are compared with it later."""

        def traced(size: int) -> tuple[Any, int, int]:
            program = self._traced(*self._given(size, torch.export.Dim.AUTO))
            (held,) = program.range_constraints.values()
            if held.upper > MOST_ROWS:  # no end, perhaps
                self.compared = 0 if held.upper >= 1 << 20 else MOST_ROWS
                return program, int(held.lower), MOST_ROWS
            return program, int(held.lower), int(held.upper)

        self.others = []
        program, low, high = traced(rows)
        while low > 2 or high < MOST_ROWS:
            size = low - 1 if low > 2 else high + 1
            other, first, last = traced(size)
            self.others.append((size, other))
            low, high = min(low, first), max(high, last)
            if len(self.others) > MOST_BRANCHES or not first <= size <= last:
                raise ImportProblem("the batch size is fixed")
        self.branches = True
        return program

    def _traced(self, args: Any, kwargs: Any, dynamic: Any) -> Any:
        def exported() -> Any:
            Float64.within = selecting = Selecting(self.folder)
            try:
                program = torch.export.export(
                    self.module, args, kwargs, dynamic_shapes=dynamic, strict=False
                )
            finally:
                Float64.within = contextlib.nullcontext()
            selecting.check()
            self.selects = self.selects or bool(selecting.used)
            return program

        drawn_before = random.getstate(), str(np.random.get_state())
        Float64.on_gradients.clear()
        experts(self.module, "batched_mm")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.ExitStack() as stack:
                functions = stack.enter_context(seen_functions(self.folder))
                stack.enter_context(masks_as_given())
                stack.enter_context(padded_sequences())
                program = exported()
            follows = not self.module.training or (
                bool(functions)
                and self._same_gradients(args, kwargs, followed_functions())
            )
            if functions and follows:  # in inference no gradient is asked for
                self.followed = {name for name, _ in functions}
                with followed_functions(), masks_as_given(), padded_sequences():
                    program, functions = exported(), []
        experts(self.module, "eager")
        self._refuse_other_gradients(args, kwargs)
        if functions:
            name, place = functions[0]
            raise ImportProblem(
                f"'{name}' is a torch.autograd.Function with another backward than "
                "the gradient of its forward, which no export keeps",
                "spell it with torch's ops: a gradient times -k is that of "
                "(1 + k) * x.detach() - k * x",
                place,
            )
        if drawn_before != (random.getstate(), str(np.random.get_state())):
            raise ImportProblem(
                "forward draws random numbers of Python or NumPy, and an export keeps "
                "what it drew once",
                "nn.Dropout, torchvision.ops.StochasticDepth; layerdrop=0 or "
                "apply_spec_augment=False where a configuration has it",
            )
        return program

    def _refuse_other_gradients(self, args: Any, kwargs: Any) -> None:
        """Hooks that only look at gradients are left out."""
        for kind, found in list(Float64.on_gradients):
            place = users_line(found, self.folder)
            if kind == "requires_grad":
                raise ImportProblem(
                    "forward changes requires_grad of a parameter; no export keeps it",
                    "set it in make, once; detach() or torch.no_grad() for a call "
                    "whose weights are not to be trained",
                    place,
                )
            if not self._same_gradients(args, kwargs, _without_hooks()):
                raise ImportProblem(
                    "a hook changes the gradient of a tensor, which no export keeps",
                    "leave out register_hook, or spell it with torch's ops: a gradient "
                    "times k is that of k * x + (1 - k) * x.detach()",
                    place,
                )

    def _same_gradients(
        self, args: Any, kwargs: Any, other: contextlib.AbstractContextManager[Any]
    ) -> bool:
        """Whether gradients in another context are those of the model, at one point;
        the proof compares the gradients at others."""

        def gradients() -> Any:
            out = self.module(*args, **kwargs)
            generator = torch.Generator().manual_seed(2)
            weights = torch.randn(out.shape, generator=generator, dtype=out.dtype)
            own = [p for p in self.module.parameters() if p.requires_grad]
            return gradients_of((out * weights).sum(), own)

        still = {k: t for k, t in self.tensors().items() if not t.requires_grad}
        before = {key: tensor.clone() for key, tensor in still.items()}
        try:
            with WithoutDropout():
                ours = gradients()
                with other as seen:
                    pairs = list(zip(ours, gradients()))
        except Exception:
            return False
        finally:
            for key, tensor in still.items():
                tensor.copy_(before[key])
        return seen != [] and all(
            one is two
            if one is None or two is None
            else torch.allclose(one, two, 1e-7, 1e-9)
            for one, two in pairs
        )

    def _failure(self, args: Any, kwargs: Any) -> Optional[ImportProblem]:
        """What fails without any export: the inputs do not fit, or one row more."""
        more = [torch.cat([t, t[:1]]) for t in args]
        named = {key: torch.cat([t, t[:1]]) for key, t in kwargs.items()}
        rows = (args or tuple(kwargs.values()))[0].shape[0]
        for positional, by_name, said, remedy in (
            (args, kwargs, "the model cannot compute with these inputs", _INPUTS),
            (more, named, f"the model's batch size is fixed at {rows}", _FIXED),
        ):
            before = self._sums()
            try:
                with torch.no_grad(), self._numbers():
                    self.module(*positional, **by_name)
                self._refuse_changes(before)
            except ImportProblem:
                raise
            except Exception as error:
                place = user_place(error, self.folder)
                lines = f"{type(error).__name__}: {error}".strip().splitlines()
                if "Length of all samples" in lines[0]:
                    remedy = "lengths.clamp(min=1): drawn integers begin at 0"
                return ImportProblem(f"{said}: {lines[0]}", remedy, place)
        return None

    def _origin(self, program: Any) -> Origin:
        signature = program.graph_signature
        tensors = self.tensors()
        parameters, constants, inputs = {}, {}, {}
        names = iter(self.names_in_order())
        for spec in signature.input_specs:
            kind = spec.kind.name
            if kind in ("PARAMETER", "BUFFER"):
                key = self.keys.get(spec.target, spec.target)
                tensor = tensors.get(key)
                if tensor is None:
                    tensor = program.state_dict.get(key, program.constants.get(key))
                if kind == "PARAMETER" and tensor.requires_grad:
                    parameters[spec.arg.name] = (key, tensor)
                else:
                    constants[spec.arg.name] = (key, tensor.detach().clone())
            elif kind == "CONSTANT_TENSOR":
                constants[spec.arg.name] = ("", program.constants[spec.target].clone())
            elif kind == "USER_INPUT" and hasattr(spec.arg, "name"):
                key, dtype, shape = next(names)
                inputs[spec.arg.name] = (key, (N, *shape[1:]), dtype)
        below = {name: s.below for name, s in zip(self.names, self.specs) if s.below}
        return Origin(parameters, constants, inputs, self.folder, below)

    def names_in_order(self) -> list[tuple[str, str, Shape]]:
        """Inputs as the exported program takes them: positional ones first."""
        rows = list(zip(self.names, self.specs))
        kwargs = arguments(self.module, self.specs, self.names)[1]
        order = [r for r in rows if not r[1].name]
        order += [next(r for r in rows if r[1].name == key) for key in kwargs]
        return [(name, spec.dtype, spec.shape) for name, spec in order]

    def _mapped(
        self, train: bool, modes: Optional[Sequence[bool]] = None
    ) -> tuple[Any, list[Mapper], list[Value]]:
        """The program, mapped with dropout and without, and their results."""
        self.others = []
        found = self._mapped_program(self._program(train), train, modes)
        for rows, program in self.others:
            _, mappers, results = self._mapped_program(program, train, modes)
            same_graphs(
                (found[1][-1].graph, found[2][-1].name),
                (mappers[-1].graph, results[-1].name),
                f"the model computes something else with {rows} rows than with fewer "
                "or more",
                "remove the branch on the batch size",
            )
        return found

    def _mapped_program(
        self, program: Any, train: bool, modes: Optional[Sequence[bool]]
    ) -> tuple[Any, list[Mapper], list[Value]]:
        refused: Optional[Refused] = None
        tried: set[str] = set()  # ops whose formula took their place
        functional_assignments(program.graph_module)
        for _ in range(DECOMPOSITIONS + 1):
            mappers, results = [], []
            formulas: dict[Any, Any] = {}  # none: only in-place ops are made functional
            try:
                for dropout in (True, False) if train else (False,):
                    origin = self._origin(program)
                    mapper = Mapper(
                        program.graph_module, origin, ROWS, modes, dropout, self.ops
                    )
                    output = mapper.run()
                    if mapper.refusals:
                        raise Refused(mapper.refusals)
                    value = _as_output(mapper, output)
                    mappers.append(mapper)
                    results.append(value)
            except InPlaceOnView:
                pass
            except Refused as found:
                refused = found if refused is None else _still(refused, found, tried)
                formulas = _formulas(program, found, mapper)
                tried |= {Mapper.op_name(op) for op in formulas}
                if not formulas:
                    raise refused from None
            else:
                self._check_buffers(program, mappers[0])
                return program, mappers, results
            # Formulas are traced again, `torch.zeros` of the user's code among them.
            with warnings.catch_warnings(), float64_by_default():
                warnings.simplefilter("ignore")
                try:
                    program = program.run_decompositions(formulas)
                except Exception as error:
                    if refused is not None:
                        raise _without_formula(refused, program, formulas) from error
                    raise _explained(error, self.folder, train) from error
            # An op that checks its values orders them by tokens, which are no tensors.
            kinds = {spec.kind.name for spec in program.graph_signature.input_specs}
            if refused and "TOKEN" in kinds:
                raise refused
        raise refused or ImportProblem(
            "a tensor changes in place through a view", "assign to a new tensor"
        )

    def _check_buffers(self, program: Any, mapper: Mapper) -> None:
        """A functional graph gives the new buffers back, where no op changes them."""
        parameters = mapper.graph.parameters
        moved = {key for name in mapper.running for key in parameters[name].targets}
        reached = self.reached(program, mapper)
        for spec in program.graph_signature.output_specs:
            key = self.keys.get(spec.target, spec.target)
            if spec.kind.name == "PARAMETER_MUTATION":
                said, remedy = changes_parameter(key)
                raise ImportProblem(f"the model {said}", remedy)
            changes = spec.kind.name == "BUFFER_MUTATION" and key not in moved
            if changes and key in reached and not key.endswith("num_batches_tracked"):
                raise ImportProblem(
                    f"forward changes the buffer '{key}'",
                    "only batch norm's running statistics may change",
                )

    def reached(self, program: Any, mapper: Mapper) -> set[str]:
        """Parameters and buffers that the output depends on."""
        names = {node.name for node in mapper.needed if node.op == "placeholder"}
        return {
            self.keys.get(spec.target, spec.target)
            for spec in program.graph_signature.input_specs
            if spec.kind.name in ("PARAMETER", "BUFFER") and spec.arg.name in names
        }

    def run(self) -> Exported:
        """Exports in both modes. Raises ImportProblem, or Refused with the list."""
        program, (mapper, plain), (value, result) = self._mapped(True)
        _, (inference,), (other,) = self._mapped(False, mapper.norm_modes)
        same_graphs(
            (plain.graph, result.name),
            (inference.graph, other.name),
            IN_BOTH_MODES,
            "only dropout and batch norm may differ by the mode: remove the branch on "
            "self.training",
        )
        if mapper.known("rms_norm"):
            spelled_norms(mapper.graph, [value.name])
        packed_projections(mapper.graph, [value.name])
        undone_transpositions(mapper.graph, [value.name])
        undone_selections(mapper.graph, [value.name])
        if self.outputs.several:
            mapper.graph.join_outputs(value.name, self.outputs.sizes)
        mapper.graph.declare_as_read([value.name])
        mapper.graph.hoist()
        mapper.graph.repeat_for_rows([value.name])
        untrained = mapper.graph.freeze_untrained([value.name], mapper.running)
        nodes = mapper.graph.live([value.name])
        inputs = {
            name: ("f32" if spec.dtype == "f32" else "i32", (N, *spec.shape[1:]))
            for name, spec in zip(self.names, self.specs)
        }
        notes = [_TWO_BIASES] if mapper.merged_biases else []
        notes += _notes(mapper, self.outputs.unused, untrained)
        if self.followed:
            notes.append(
                "these have a backward of their own, which is the gradient of their "
                f"forward as far as it was compared: {', '.join(sorted(self.followed))}"
            )
        if self.selects:
            notes.append(
                "rows that a mask selects (experts) are computed for all rows, and the "
                "mask is applied to what comes of them: the same numbers, more work"
            )
        if self.compared:
            notes.append(
                "forward branches on the batch size: what it computes was compared for "
                f"up to {self.compared} rows"
            )
        self.padding = mapper.padding
        self.exported = Exported(
            mapper.graph, nodes, value, inputs, mapper.running, program, mapper, notes
        )
        reached = self.exported.reached = self.reached(program, mapper)
        still = [k for k in self.still if f"{k}.running_mean".lstrip(".") in reached]
        if still:
            notes.append(
                "given in evaluation mode, these instance norms keep their running "
                f"statistics in training too: {', '.join(still).strip() or 'the model'}"
            )
        return self.exported


def _notes(mapper: Mapper, outputs: Sequence[str], untrained: list[str]) -> list[str]:
    notes = [
        f"the integers of '{name}' are 0 and 1, as in a mask; for others below 1000 "
        "its --input ends in '<1000'"
        for name in sorted(mapper.masks)
    ]
    if mapper.masked:
        notes.append(_NO_KEY)
    if outputs:
        notes.append(
            "the loss does not compare what training gives besides: "
            + ", ".join(outputs)
        )
    if untrained:
        shown = untrained[:8] + [f"{len(untrained) - 8} more"] * (len(untrained) > 8)
        notes.append(f"no gradient reaches these, they are frozen: {', '.join(shown)}")
    return notes


def _as_output(mapper: Mapper, chosen: Any) -> Value:
    """What the loss compares: a float for each row."""
    try:
        value = mapper.batch_first(mapper.value(chosen))
    except Unsupported as why:
        raise ImportProblem(
            f"the output cannot be compared by a loss: it {why}",
            "give one tensor of floats whose first axis is the batch",
        ) from why
    if value.dtype != "f32" or value.layout.rank < 1:
        raise ImportProblem(
            "the output holds integers or truth values", "give a tensor of floats"
        )
    return value


DECOMPOSITIONS = 3  # rounds at most: a formula may hold an op that has one too


def _formulas(program: Any, refused: Refused, mapper: Mapper) -> dict[Any, Any]:
    """torch's own formulas of the refused ops: by the op that is called."""
    wanted = {r.op for r in refused.refusals if not mapper.has_row(r.op)}
    known = torch.export.default_decompositions()
    found = {}
    for node in program.graph.nodes:
        op = node.target
        called = isinstance(op, torch._ops.OpOverload) and not op._schema.is_mutable
        if called and Mapper.op_name(op) in wanted:
            formula = known[op] if op in known else decomposition_table.get(op)
            if formula is not None:
                found[op] = formula
    return found


def _without_formula(
    refused: Refused, program: Any, formulas: dict[Any, Any]
) -> Refused:
    """Of the refused ops those that have no formula, or one that torch cannot trace."""
    traced = set()
    for op, formula in formulas.items():
        with contextlib.suppress(Exception):
            program.run_decompositions({op: formula})
            traced.add(Mapper.op_name(op))
    kept = [r for r in refused.refusals if r.op not in traced]
    return Refused(kept or refused.refusals)


def _still(first: Refused, later: Refused, tried: set[str]) -> Refused:
    """Of the ops as the user wrote them those that stand in the way: no formula took
    their place, or what is refused now came of it."""
    known = {(r.op, r.where) for r in first.refusals}
    new = [r for r in later.refusals if (r.op, r.where) not in known]
    places = {refusal.where for refusal in new}
    kept = [r for r in first.refusals if r.op not in tried or r.where in places]
    return Refused(kept or first.refusals)


def _dynamic(module: Any, args: Any, kwargs: Any, shapes: Any) -> Any:
    """Dynamic shapes by parameter, as torch wants them with keywords and *args."""
    signature = inspect.signature(module.forward)
    kinds = [p.kind for p in signature.parameters.values()]
    if not kwargs and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return shapes[0]
    bound = signature.bind_partial(*args, **kwargs).arguments
    found: dict[str, Any] = {}
    rest = iter(shapes[0])
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            found[name] = tuple(next(rest) for _ in value)
        else:
            found[name] = shapes[1][name] if name in shapes[1] else next(rest)
    return found


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    """Tensors take no hooks."""
    Float64.without_hooks = True
    try:
        yield
    finally:
        Float64.without_hooks = False


_FIXES = re.compile("Constraints violated|specialized|ConstraintViolation")
_BRANCHES = "satisfy the generated guard"  # one range of batch sizes, not one size
_DATA_DEPENDENT = re.compile(
    r"data-dependent|DataDependent|GuardOnDataDependent|Unbacked|unbacked|_local_scalar_dense"
    r"|item\(\)|nonzero"
)


def _explained(error: Exception, folder: str, train: bool) -> ImportProblem:
    """An export's failure in words."""
    text = f"{type(error).__name__}: {error}"
    place = user_place(error, folder)
    chain: Optional[BaseException] = error
    while chain is not None and not place:
        chain = chain.__cause__ or chain.__context__
        place = user_place(chain, folder) if chain else ""
    if not place:
        found = re.findall(r'File "([^"]+)", line (\d+)', str(error))
        own = [f for f in found if is_users(f[0], folder)]
        place = f"{own[-1][0].rpartition('/')[2]}:{own[-1][1]}" if own else ""
    mode = "training" if train else "inference"
    if _DATA_DEPENDENT.search(text):
        return ImportProblem(
            "what is computed depends on the data (a branch, a loop or a shape by a "
            "tensor's values)",
            "torch.where keeps both branches in one graph; layers that are left out at "
            "random: layerdrop=0",
            place,
        )
    if _FIXES.search(text):
        return ImportProblem(
            "the batch size is taken out as a number and computed with", _FIXED, place
        )
    first = str(error).strip().splitlines()[0] if str(error).strip() else ""
    return ImportProblem(
        f"torch.export fails in {mode} mode: {type(error).__name__}: {first}",
        "the module must run with these inputs, and be traceable by torch.export",
        place,
    )
