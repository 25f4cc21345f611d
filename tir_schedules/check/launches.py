"""Launches as a file's own host code has them, `kernel<<<grid, block, bytes>>>(arguments)`: where no option
says how a kernel is launched, its source does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from tir_schedules.check.arguments import ARRAY, Given
from tir_schedules.check.expressions import Asked, dim3, number, shared_bytes, whole, wholes
from tir_schedules.check.host.statements import Host, Scope, Unknown
from tir_schedules.check.host.text import LAUNCH, Code, read_code, split_commas
from tir_schedules.check.host.values import Enumerator, Function, Kind, Unresolved, dims
from tir_schedules.check.target import base, plain
from tir_schedules.check.types import FORMATS, NAMES
from tir_schedules.compiler.signature import functions
from tir_schedules.errors import BadInput, nearest, one_line
from tir_schedules.model.attributes import spelled
from tir_schedules.source import Source

NAME_BEFORE = re.compile(r"(?:::\s*)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*$")
RUNTIME = re.compile(r"\bcuda(LaunchKernelExC|LaunchKernelEx|LaunchKernel|LaunchCooperativeKernel)\s*\(")
CAST = re.compile(
    r"\b\w+_cast\s*<[^<>]*(?:<[^<>]*>)?[^<>]*>|\(\s*(?:const\s+)?[\w:]+\s*(?:const\s*)?\*+\s*\)"
)
POINTED = re.compile(
    r"[\s(]*([A-Za-z_]\w*)\s*(?:(?:\.|->)(?:mutable_|const_)?(?:data_ptr|data|contiguous|clone|get|detach|cuda|value)"
    r"\s*(?:<[^()]*>)?\s*\(\s*\))*[\s)]*"
)
"""An array of host code, from its beginning."""

OPTIONAL = re.compile(r"^[^?]*\?([^:]*):\s*(?:nullptr|NULL|0)\s*\)?\s*$")
"""An array, or a null pointer in its place."""

ACCESSOR = re.compile(r"(?:(?:at|torch)::)?PackedTensorAccessor(?:32|64)?\s*<\s*(\w+)\s*,")
"""PyTorch's, of an array whose elements are of that type."""

REAL = re.compile(r"float|double|half|bfloat")
RAISING = re.compile(r"MaxDynamicSharedMemorySize|MAX_DYNAMIC_SHARED_SIZE_BYTES")
"""The attribute of a kernel, in CUDA's runtime and driver."""

PLAIN = re.compile(r"(?:\(\s*[\w ]+\)|static_cast\s*<[^<>]*>\s*\()?\s*([A-Za-z_]\w*)\s*\)?")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
TYPES = {name: kind for kind, name in reversed(NAMES.items()) if " " not in kind}
"""Formats -> C++ types."""

HOW = "say how it is launched: --grid and --block, such as --grid 4 --block 256, or --launch"
LOOPED = "; it is in a loop, and only its first turn is run: give every turn as a --launch"
LISTED = 8
ASSUMED = 64
"""A value for a size, to see which others a launch needs."""


@dataclass(frozen=True)
class Call:
    """A launch in the text. template: what stands in the angles behind the kernel's name, None for no
    angles. extents: the text of grid, block and bytes. arguments: their texts; by_address: the one that is an
    array of their addresses. cooperative: whether it may be a cooperative launch."""

    position: int
    kernel: str
    template: tuple[str, ...] | None
    extents: tuple[str, str, str]
    arguments: tuple[str, ...]
    by_address: bool = False
    cooperative: bool = False


class OtherInstance(BadInput):
    """A launch of another instance of a template than is asked for."""


class Untold(BadInput):
    """A launch that needs a value which is not known. part: of which, such as "grid"; "" for several of them.
    sizes: variables that the user could give; empty where it is another expression. option: what else would
    tell it."""

    def __init__(self, part: str, launch: str, needs: str, sizes: Sequence[str], option: str):
        self.part, self.launch, self.needs, self.sizes, self.option = part, launch, needs, sizes, option
        lets = "".join(f"--let {name}=... " for name in sizes).rstrip()
        super().__init__(
            f"{f'the {part} of ' if part else ''}{launch} needs {needs}, which"
            f" {'are' if len(sizes) > 1 else 'is'} not known: say {f'{lets}, or ' if sizes else ''}{option}"
        )


class Known(NamedTuple):
    """What the user says. given: arguments. sizes: of --let. extents: grid, block and bytes as options have
    them, None for those to be read. shape: the extents of a ladder, "M" and the like, of --as."""

    given: Sequence[Given]
    sizes: Mapping[str, Any]
    extents: tuple[str | None, str | None, str | None]
    shape: Mapping[str, int] = {}


@lru_cache(maxsize=8)
def host_of(source: Source, folders: tuple[str, ...], defines: tuple[str, ...]) -> Host:
    return Host(read_code(source, folders, defines))


def read_launch(
    source: Source, folders: Sequence[str], defines: Sequence[str], kernel: str, known: Known
) -> Asked:
    """The launch of a kernel, "" for the only one that is launched; of several the first that can be told.

    BadInput where the source launches it nowhere, and where a name in the launch has no value.
    """
    host, calls = launches_of(source, folders, defines, kernel)
    check_macros(source, host, known.sizes)
    meant = dict.fromkeys(qualified(*one)[2:] for call in calls if len(one := seen(host, call)) == 1)
    there = list(dict.fromkeys(base(call.kernel) for call in calls))
    if len(meant) > 1 and len(there) == 1:
        raise BadInput(f"{source.file} launches {', '.join(meant)}: name one by --kernel")
    kernels = functions(host.code.text)
    if kernel and kernels and base(kernel) not in [*kernels, *there] and not is_named(kernel, host.code):
        hint = nearest(base(kernel), kernels)
        raise BadInput(f"{source.file} has no kernel {kernel!r}{hint}: it has {', '.join(kernels[:LISTED])}")
    pointers = [call.kernel for call in calls if is_pointer(host, call)]
    if kernels and there and set(there) == set(pointers):
        raise BadInput(
            f"{source.file} launches what `{there[0]}` points to, which is not known: name one by --kernel:"
            f" it has {', '.join(kernels[:LISTED])}"
        )
    there = [f"what `{one}` points to" if one in pointers else one for one in there]
    if not there and not kernels and not kernel:
        raise BadInput(f"{source.file} has no __global__ function: name a file with a kernel")
    if not there:
        raise BadInput(f"{HOW}; no line of {source.file} launches {kernel or 'a kernel'}")
    if len(there) > 1:
        more = f" and {len(there) - LISTED} more" if len(there) > LISTED else ""
        raise BadInput(
            f"{source.file} launches {', '.join(there[:LISTED])}{more}: name one by --kernel, or several by"
            " --then"
        )
    failures: list[BadInput] = []
    found: list[Asked] = []
    others: list[Asked] = []  # in branches whose conditions do not hold
    for call in calls:
        reading = Reading(host, call, kernel, known)
        try:
            asked = reading.asked()
        except BadInput as error:
            failures.append(reading.unsized or with_all_sizes(error, host, call, kernel, known))
            continue
        (found if reading.is_reached else others).append(asked)
    found = found or others
    if not found:
        raise next((one for one in failures if not isinstance(one, OtherInstance)), failures[0])
    first, shapes = found[0], {(one.kernel, one.grid, one.block, one.shared) for one in found}
    also = f"; the first of {len(shapes)} that differ" if len(shapes) > 1 else ""
    return replace(first, read=first.read + also)


def check_macros(source: Source, host: Host, sizes: Mapping[str, Any]) -> None:
    """BadInput for a size that is another in a macro of the file, where kernels are compiled with that."""
    device = host.in_device_code() if sizes.keys() & host.code.macros.keys() else set()
    for name in sizes.keys() & device & host.code.macros.keys():
        try:
            value = host.evaluate(host.code.macros[name].body, host.globals)
        except Unresolved:
            continue
        if isinstance(value, (int, float)) and value != sizes[name]:
            raise BadInput(
                f"{name} is {value} by a #define of {source.file}, which its kernels use, and {sizes[name]}"
                " by the command: say the same, or change the file"
            )


def with_all_sizes(error: BadInput, host: Host, call: Call, kernel: str, known: Known) -> BadInput:
    """An error that names all sizes that a launch needs, not the first alone: those that are asked for once
    the others have a value, whichever it is."""
    found, every, sizes = error, [], dict(known.sizes)
    while isinstance(found, Untold) and found.sizes and found.sizes[0] not in sizes:
        every.append(found)
        sizes[found.sizes[0]] = ASSUMED
        try:
            Reading(host, call, kernel, known._replace(sizes=sizes)).asked()
            break
        except BadInput as other:
            found = other
    if not isinstance(error, Untold) or len(every) < 2:
        return error
    *firsts, last = [one.needs for one in every]
    is_one = len({one.part for one in every}) == 1
    option = max((one.option for one in every), key=len)  # "--grid and --block" has "--grid"
    names = [one.sizes[0] for one in every]
    return Untold(
        error.part if is_one else "", error.launch, f"{', '.join(firsts)} and {last}", names, option
    )


def is_named(kernel: str, code: Code) -> bool:
    """Whether a name is in the text, as one that a macro makes a kernel of."""
    return re.search(rf"\b{re.escape(base(kernel))}\b", code.text) is not None


def launches_of(
    source: Source, folders: Sequence[str], defines: Sequence[str], kernel: str
) -> tuple[Host, list[Call]]:
    """The launches of a kernel, or of all, in a source."""
    host = host_of(source, tuple(folders), tuple(defines))
    host.give({}, {})
    calls = [named(host, call) for call in calls_in(host.code)]
    if not kernel:
        return host, [pointed_at(host, call, every_kernel(host)) or call for call in calls]
    name = kernel.partition("(")[0].partition("<")[0]
    by_name = [call for call in calls if base(call.kernel) == base(name)]
    full = [call for call in by_name if any(qualified(one).endswith(f"::{name}") for one in seen(host, call))]
    by_pointer = (pointed_at(host, call, kernels(host, name)) for call in calls)
    return host, full or by_name or [call for call in by_pointer if call]


def is_launched(source: Source, folders: Sequence[str], defines: Sequence[str], kernel: str) -> bool:
    """Whether a source launches a kernel, or one where none is named."""
    if source.is_python or not re.search(r"<<<|LaunchKernel", source.text):
        return False
    return bool(launches_of(source, folders, defines, kernel)[1])


# ---- launches in the text ---
def calls_in(code: Code) -> list[Call]:
    found = [*launches_in(code), *runtime_calls_in(code)]
    return sorted(found, key=lambda call: call.position)


def launches_in(code: Code) -> Iterator[Call]:
    """`kernel<T, 4><<<grid, block>>>(A, n)`."""
    text, at = code.text, 0
    while (at := text.find(LAUNCH, at)) >= 0:
        end = text.find(">>>", at)
        opening = re.compile(r"\s*\(").match(text, end + 3) if end >= 0 else None
        named = kernel_before(text, at)
        if opening and named:
            parts = tuple(split_commas(text[at + 3 : end]))
            given = text[opening.end() : code.pairs.get(opening.end() - 1, len(text))]
            if 2 <= len(parts) <= 4:
                extents = (parts[0], parts[1], parts[2] if len(parts) > 2 else "0")
                yield Call(named[2], named[0], named[1], extents, tuple(split_commas(given)))
        at += 3


def kernel_before(text: str, end: int) -> tuple[str, tuple[str, ...] | None, int] | None:
    """A kernel's name, the arguments of its template and where it begins, of what ends there."""
    head = text[:end].rstrip()
    while head.endswith(")"):  # (kernel<4>)<<<
        head = head[:-1].rstrip()
    template = None
    if head.endswith(">"):
        depth, at = 0, len(head)
        while at > 0:
            at -= 1
            depth += (head[at] == ">") - (head[at] == "<")
            if not depth or head[at] in ";{}":
                break
        template, head = tuple(split_commas(head[at + 1 : -1])), head[:at].rstrip()
    name = NAME_BEFORE.search(head[-300:])
    if not name:
        return None
    return re.sub(r"\s+", "", name[0]), template, len(head) - len(head[-300:]) + name.start()


def runtime_calls_in(code: Code) -> Iterator[Call]:
    """`cudaLaunchKernel((void *)kernel, grid, block, arguments, bytes, stream)` and its like."""
    for match in RUNTIME.finditer(code.text):
        parts = list(split_commas(code.text[match.end() : code.pairs.get(match.end() - 1, len(code.text))]))
        extended, cooperative = match[1].startswith("LaunchKernelEx"), match[1] != "LaunchKernel"
        if len(parts) < (2 if extended else 4):
            continue
        function = CAST.sub("", parts[1 if extended else 0]).strip("() &")
        named = kernel_before(function, len(function))
        if not named:
            continue
        if extended:
            config = parts[0].lstrip("& ")
            extents = (f"{config}.gridDim", f"{config}.blockDim", f"{config}.dynamicSmemBytes")
            yield Call(match.start(), named[0], named[1], extents, tuple(parts[2:]), False, cooperative)
        else:
            extents = (parts[1], parts[2], parts[4] if len(parts) > 4 else "0")
            yield Call(match.start(), named[0], named[1], extents, (parts[3],), True, cooperative)


def named(host: Host, call: Call) -> Call:
    """A launch by way of a variable, `auto kernel = &scale<4>`, with the kernel's own name."""
    if kernels(host, call.kernel):
        return call
    scope = host.at(call.position)
    there = scope.of(call.kernel)
    value = there.values[call.kernel] if there else None
    text = value.text if isinstance(value, Unknown) else value if isinstance(value, Kind) else ""
    text = text.strip("& ")
    found = kernel_before(text, len(text)) if text else None
    if found and is_pointer(host, call) and every_kernel(host) and not kernels(host, found[0]):
        return call  # what a function returns, for example
    return replace(call, kernel=found[0], template=found[1]) if found else call


def is_pointer(host: Host, call: Call) -> bool:
    """Whether a launch is of what a variable points to, which is not known."""
    return not kernels(host, call.kernel) and host.at(call.position).of(call.kernel) is not None


def pointed_at(host: Host, call: Call, choice: Sequence[Function]) -> Call | None:
    """A launch by way of a pointer as one of a kernel, if one name of the choice takes so many arguments."""
    fitting = [one for one in choice if call.by_address or len(one.parameters) == len(call.arguments)]
    names = dict.fromkeys(qualified(one)[2:] for one in fitting)
    return replace(call, kernel=[*names][0]) if is_pointer(host, call) and len(names) == 1 else None


def every_kernel(host: Host) -> list[Function]:
    return [one for one in host.functions if is_kernel(host, one)]


def kernels(host: Host, name: str) -> list[Function]:
    """The kernels of a name."""
    return [one for one in host.named(name.rpartition("::")[2]) if is_kernel(host, one)]


def is_kernel(host: Host, function: Function) -> bool:
    return "__global__" in host.code.text[function.head : function.body[0]]


def qualified(function: Function) -> str:
    return "::".join(("", *function.path, function.name))


def seen(host: Host, call: Call) -> list[Function]:
    """The kernels that a launch may mean, by its namespaces and those around it."""
    there = kernels(host, call.kernel)
    around = host.around(call.position)
    asked = tuple(call.kernel.removeprefix("::").split("::")[:-1])
    path = around.path if around else ()
    paths = [path[:count] + asked for count in range(len(path), -1, -1)]
    for wanted in paths:
        if found := [one for one in there if one.path == wanted]:
            return found
    return there


# ---- what one of them comes to ---
class Reading:
    """One launch, with what the user gives in its variables."""

    def __init__(self, host: Host, call: Call, kernel: str, known: Known):
        self.host, self.call, self.kernel, self.known = host, call, kernel, known
        self.place, self.is_reached = host.code.place(call.position), True
        self.unsized: BadInput | None = None  # of an array whose extents the user does not give
        there = seen(host, call)
        fitting = [one for one in there if len(one.parameters) == len(call.arguments)]
        self.function = (fitting or there or [None])[0]
        self.arguments = self.by_address() if call.by_address else call.arguments
        self.extents = extents_of(self.function, known.shape) if self.function else {}

    def by_address(self) -> tuple[str, ...]:
        """For `void *arguments[] = {&A, &n}`, the names in the braces."""
        scope = self.host.at(self.call.position)
        name = CAST.sub("", self.call.arguments[0]).strip("* ()")
        there = scope.of(name)
        value = there.values[name] if there else None
        text = value.text.strip() if isinstance(value, Unknown) else ""
        parts = split_commas(text[1:-1]) if text.startswith("{") else ()
        return tuple(CAST.sub("", part).strip("& ") for part in parts)

    def asked(self) -> Asked:
        """BadInput, with the name that has no value, where it cannot be told."""
        asked = template_of(self.kernel)
        fixed, arrays = self.values(asked)
        position = self.call.position
        self.host.give(fixed, arrays)
        scope = self.host.at(position)
        self.is_reached = position not in self.host.unreached
        assumed = {
            name: value for name, value in self.host.assumed.get(position, {}).items() if name not in fixed
        }
        if assumed:
            self.host.give({**fixed, **assumed}, arrays)
            scope = self.host.at(position)
        kernel = self.instance(scope, asked)
        x, y, shared = self.known.extents
        grid = dim3(wholes(x, self.known.sizes, "--grid"), x, "--grid") if x else self.extent(scope, 0)
        block = dim3(wholes(y, self.known.sizes, "--block"), y, "--block") if y else self.extent(scope, 1)
        given = whole(shared, self.known.sizes, "--shared") if shared else self.bytes(scope)
        values = tuple(self.numbers(scope))
        if not (x and y):
            self.check_shape(values)
        shown = f"grid ({spelled(grid)}), block ({spelled(block)}), {given} bytes"
        read = ", ".join([f"launch read from {self.place}: {shown}", *self.taken(values)])
        read += LOOPED if position in self.host.looped else ""
        raised = bool(shared) or is_raised(self.host.code)
        return Asked(
            kernel, grid, block, given,
            read=read, values=values, raised=raised, cooperative=self.call.cooperative,
        )  # fmt: skip

    def check_shape(self, values: Sequence[str]) -> None:
        """BadInput for a launch of another shape than is asked for."""
        for (name, _), text in zip(self.pairs(), values):
            role = self.extents.get(name, "")
            size = self.known.shape.get(role)
            if size is not None and re.fullmatch(r"\d+", text) and int(text) != size:
                raise BadInput(
                    f"the launch at {self.place} is of {name} = {text}, and {role} is {size}: say --grid and"
                    " --block"
                )

    def taken(self, values: Sequence[str]) -> Iterator[str]:
        """Numbers that parameters get from the launch, as the user gives none."""
        given = {*self.known.sizes, *dict(self.named_arguments())}
        for (name, _), text in zip(self.pairs(), values):
            if text and not text.isidentifier() and name not in given:
                yield f"{name} = {text}"

    def values(self, asked: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Names of host code that the user gives: sizes, numbers and arrays, by the names of the kernel's
        parameters too."""
        sizes = self.known.sizes
        fixed, arrays = dict(sizes), {}
        numbers: dict[str, Any] = {}
        absent: dict[str, Any] = {}
        for name, text in self.named_arguments():
            match = ARRAY.fullmatch(text)
            if match and (match[1] or "f32") in FORMATS:
                try:
                    shape = wholes(match[2], sizes, f"--arg {name}=") if match[2].strip() else ()
                except BadInput as error:
                    self.unsized = self.unsized or error
                    continue
                arrays[name] = shape, int(re.sub(r"\D", "", match[1] or "f32")) // 8
            elif text == "null":
                absent[name] = 0
            elif not match and not text.endswith(".npy"):
                try:
                    numbers[name] = number(text, sizes, f"--arg {name}=")
                except BadInput:
                    continue
        passed = {}
        for name, text in self.pairs():
            alone = PLAIN.fullmatch(text)
            size = self.known.shape.get(self.extents.get(name, ""))
            if size is not None and alone and fixed.setdefault(alone[1], size) != size:
                sizes = ", ".join(f"{role} = {self.known.shape[role]}" for role in self.extents.values())
                raise BadInput(
                    f"the launch at {self.place} passes {alone[1]} for several of {sizes}: say --grid and"
                    " --block"
                )
            if name in arrays:
                passed |= dict.fromkeys(self.pointed(text), arrays[name])
            elif name in absent:
                fixed |= dict.fromkeys(self.pointed(text), 0)
            elif name in numbers and alone:
                fixed.setdefault(alone[1], numbers[name])
            elif name in fixed and alone:
                fixed.setdefault(alone[1], fixed[name])
        arrays, fixed = arrays | passed, numbers | fixed
        for text, part in zip(self.call.template or (), asked):
            if IDENTIFIER.fullmatch(text) and text not in {*NAMES, part} and not self.is_declared(text):
                value = self.number_of(part)
                fixed.setdefault(text, Kind(part) if value is None else value)
        deduced = self.deduced()
        for text, (parameter, *_) in zip(
            self.call.template or (), self.function.template if self.function else ()
        ):
            if parameter in deduced and IDENTIFIER.fullmatch(text) and text not in NAMES:
                fixed.setdefault(text, Kind(deduced[parameter]))
        return fixed, arrays

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Parameters of the kernel by name, and what the launch gives them."""
        names = [name for name, *_ in self.function.parameters] if self.function else []
        return zip(names, self.arguments)

    def named_arguments(self) -> Iterator[tuple[str, str]]:
        """Arguments of the user's by name; those without one go to the parameters that are left."""
        named = {one.name for one in self.known.given}
        left = [
            (name, kind)
            for name, kind, _ in (self.function.parameters if self.function else ())
            if name not in named and (takes_array(kind) or name not in self.known.sizes)
        ]
        for one in self.known.given:
            if one.name:
                yield one.name, one.text
                continue
            array = ARRAY.fullmatch(one.text)
            while left and bool(array) != takes_array(left[0][1]):
                left.pop(0)
            if left:
                yield left.pop(0)[0], one.text

    def pointed(self, text: str) -> list[str]:
        """Names in host code of the array that an argument points to: "x" of `x.data_ptr<float>()`, and "in"
        where x is `in.contiguous()`."""
        names: list[str] = []
        scope = self.host.at(self.call.position)
        while match := POINTED.fullmatch(CAST.sub("", OPTIONAL.sub(r"\1", text))):
            if match[1] in names:
                break
            names.append(match[1])
            there = scope.of(match[1])
            value = there.values[match[1]] if there else None
            if not isinstance(value, Unknown):
                break
            text = value.text
        return names

    def instance(self, scope: Scope, asked: Sequence[str]) -> str:
        """The kernel with the arguments of its template. BadInput where they are not known, or are others
        than those that are asked for."""
        function, own = self.function, self.call.template
        plainly, _, template = self.kernel.partition("<")
        name = qualified(function)[2:] if function else plainly or self.call.kernel.removeprefix("::")
        kernel = self.kernel if "(" in self.kernel else f"{name}<{template}" if template else name
        deduced = self.deduced()
        if own is None:
            if asked or not function or not function.template:
                return kernel
            parts = [deduced.get(one) for one, *_ in function.template]
            known = parts[: parts.index(None)] if None in parts else parts
            return f"{name}<{', '.join(filter(None, known))}>" if known else kernel
        found = []
        for at, text in enumerate(own):
            is_type = (
                at < len(function.template) and function.template[at][1] == "type" if function else False
            )
            try:
                found.append(self.template_argument(text, scope, is_type))
            except Unresolved as error:
                parameter = function.template[at][0] if function and at < len(function.template) else ""
                if parameter not in deduced:
                    raise BadInput(
                        f"the launch of {name} at {self.place} has {error.text} in its template: name the"
                        f" instance, --kernel '{name}<...>'"
                    ) from None
                found.append(deduced[parameter])
        if asked and not all(map(self.is_same, asked, found)):
            raise OtherInstance(
                f"{self.place} launches {name}<{', '.join(found)}>, and no line {self.kernel}: say --grid and"
                " --block"
            )
        return kernel if asked else f"{name}<{', '.join(found)}>" if found else name

    def number_of(self, text: str) -> int | None:
        """The number that an argument of a template is, as one outside of functions has it."""
        try:
            value = self.host.evaluate(text, self.host.globals)
        except Unresolved:
            return None
        return value if isinstance(value, int) else None

    def is_same(self, one: str, other: str) -> bool:
        """Whether two arguments of a template are the same type or number."""
        if plain(one) == plain(other):
            return True
        first, second = self.number_of(one), self.number_of(other)
        return first is not None and first == second

    def template_argument(self, text: str, scope: Scope, is_type: bool) -> str:
        if not is_type:
            try:
                value = self.host.evaluate(text, scope)
                if isinstance(value, int):
                    return value.name if isinstance(value, Enumerator) else str(value)
            except Unresolved:
                if self.function:
                    raise
        kind = self.host.kind(text, scope)
        for name in IDENTIFIER.findall(kind):
            if not self.is_known(name, kind):
                raise Unresolved(name)
        return kind.replace(" ", "") if " " in kind and "<" in kind else str(kind)

    def is_known(self, name: str, kind: str) -> bool:
        """Whether a name in a type is one of C++, of a header, or of the file."""
        return (
            name in " ".join(NAMES).split()
            or "::" in kind
            or kind.endswith(("2", "3", "4"))
            or self.is_declared(name)
            or name in ("const", "true", "false", "half", "nv_bfloat16")
        )

    def is_declared(self, name: str) -> bool:
        """Whether it is a type or a function of the file."""
        types = (
            rf"\b(?:(?:struct|class|enum|union)\s+{name}\b(?!\s*[,>=])|(?:using|typedef\b[^;]*)\s+{name}\b)"
        )
        return bool(self.host.named(name) or re.search(types, self.host.code.text))

    def deduced(self) -> dict[str, str]:
        """Types of the kernel's template by the formats of the arrays that it is given."""
        if not self.function:
            return {}
        formats = {
            name: match[1] for name, text in self.named_arguments() if (match := ARRAY.fullmatch(text))
        }
        types = {name for name, kind, _ in self.function.template if kind == "type"}
        found: dict[str, str] = {}
        for name, kind, _ in self.function.parameters:
            accessor = ACCESSOR.match(kind)
            parameter = accessor[1] if accessor else kind.removesuffix("*").strip()
            if parameter in types and formats.get(name) in TYPES:
                found.setdefault(parameter, TYPES[formats[name]])
        return found

    def extent(self, scope: Scope, at: int) -> tuple[int, int, int]:
        value = self.resolved(scope, at)
        try:
            x, y, z = dims(value if isinstance(value, tuple) else (value,))
        except (Unresolved, TypeError, ValueError):
            raise self.untold(at, Unresolved("", one_line(self.call.extents[at]))) from None
        return x, y, z

    def bytes(self, scope: Scope) -> int:
        text = self.call.extents[2]
        if text.endswith(".dynamicSmemBytes") and not scope.of(text):
            return 0
        return shared_bytes(int(self.resolved(scope, 2)), text)

    def resolved(self, scope: Scope, at: int) -> Any:
        text = self.call.extents[at]
        member = re.fullmatch(r"(\w+)\.(gridDim|blockDim|dynamicSmemBytes)", text)
        try:
            there = scope.of(member[1]) if member else None
            whole = there.values[member[1]] if there and member else None
            if isinstance(whole, tuple) and not scope.of(text) and len(whole) > at:
                value = whole[at]
            else:
                value = self.host.evaluate(text, scope)
            if isinstance(value, (int, float, tuple)) and not isinstance(value, bool):
                return value
            raise Unresolved("", one_line(text))
        except Unresolved as error:
            raise self.untold(at, error) from None

    def untold(self, at: int, error: Unresolved) -> Untold:
        """What a launch needs, and how to give it."""
        what, option = (
            ("grid", "--grid"),
            ("block", "--grid and --block"),
            ("dynamic shared memory", "--shared"),
        )[at]
        needs = error.name or error.text
        needs += f" from {one_line(error.text)}" if error.text != needs else ""
        text = one_line(self.call.extents[at])
        shown = f" ({text})" if text != needs and len(text) < 60 else ""
        launch = f"the launch at {self.place}{shown}"
        return Untold(what, launch, needs, [error.name] if error.name else [], option)

    def numbers(self, scope: Scope) -> Iterator[str]:
        """What the launch gives each parameter: a number, the name of an array of host code, or ""."""
        for (_, kind, _), text in zip(self.function.parameters if self.function else (), self.arguments):
            if kind.endswith("*"):
                yield (self.pointed(text) or [""])[0]
                continue
            try:
                value = self.host.evaluate(text, scope)
                yield repr(value) if isinstance(value, (int, float)) else ""
            except Unresolved:
                yield ""


def extents_of(function: Function, shape: Mapping[str, int]) -> dict[str, str]:
    """Parameters of a kernel of a ladder -> "M", "N" or "K": by their names, or else by their order, as
    usual.py tells them."""
    types = {name for name, kind, _ in function.template if kind == "type"}
    numbers = [
        name
        for name, kind, _ in function.parameters
        if not takes_array(kind) and not REAL.search(kind) and kind not in types
    ]
    named = {name: name.upper() for name in numbers if name.upper() in shape}
    if named or len(numbers) != len(shape):
        return named
    return dict(zip(numbers, shape))


def is_raised(code: Code) -> bool:
    """Whether host code lets some kernel have more dynamic shared memory than CUDA gives by default."""
    return any(map(RAISING.search, (code.text, *(macro.body for macro in code.macros.values()))))


def takes_array(kind: str) -> bool:
    return kind.endswith("*") or bool(ACCESSOR.match(kind))


def template_of(kernel: str) -> list[str]:
    """Arguments of a template that the user asks for."""
    inner = kernel.partition("<")[2].rpartition(">")[0]
    return list(split_commas(inner)) if inner else []
