# pyright: strict
"""`emit`: what a schedule becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Mapping

from tir_schedules.api.functions import kernel_of, own_of
from tir_schedules.api.options import Scheduler, Shape
from tir_schedules.api.problems import job_of, options_of
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import OWN, RUNG, Subject, as_rung, kind_of
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import disassemble
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import print_source
from tir_schedules.emit import emit_text
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, to_json
from tir_schedules.ladders.problems import EMIT_SHAPES
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.launch import Dim3

if TYPE_CHECKING:
    from typing_extensions import Unpack

Form = Literal["cuda", "ptx", "sass", "tir"]
FORMS = {"cuda": "cuda", "ptx": "text", "sass": "text", "tir": "python"}
"""Forms of code, and the language that each is coloured as."""


@dataclass(frozen=True, repr=False)
class Code(Result):
    """The text of a kernel.

    - name: that of the rung or function.
    - form: "cuda", "ptx", "sass" or "tir".
    - entry, params, grid, block, shared: how a function of your own is launched; shared is in bytes of
      dynamic shared memory. For a rung this is in the comment above its CUDA.
    """

    text: str
    name: str
    form: Form
    arch: str
    entry: str = ""
    params: tuple[str, ...] = ()
    grid: Dim3 | None = None
    block: Dim3 | None = None
    shared: int = 0

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Code({self.name}, {self.form} for {self.arch}, {len(self.text.splitlines())} lines)"

    def show(self) -> None:
        print_source(self.text, FORMS[self.form])

    def to_json(self) -> Json:
        return to_json(vars(self))


def emit(
    subject: Subject,
    *,
    form: Form = "cuda",
    twin: bool = False,
    arch: str = CPU_ARCH,
    kernel: str = "",
    sizes: Mapping[str, int | float] | None = None,
    schedule: Scheduler | None = None,
    **shape: Unpack[Shape],
) -> Code:
    """What a schedule becomes: CUDA, PTX, SASS, or its TensorIR.

    - subject: a rung by name or as an object, or a Schedule, PrimFunc or IRModule of TVM.
    - form: "cuda", "ptx", "sass" or "tir".
    - twin: show the hand-written twin of the rung.
    - arch: the GPU architecture, such as "sm_90".
    - kernel: name of the function, if a module has several.
    - sizes: values for symbolic extents.
    - schedule: a function that schedules the PrimFunc. It is called with a TVM Schedule of a copy.

    Raises BadInput if a name does not exist or an option is not possible, such as a function without loops on
    threads. Raises CheckFailed if TVM or nvcc refuses it.
    """
    if form not in FORMS:
        raise BadInput(f"form is {form!r}; it can be {', '.join(FORMS)}")
    if kind_of(subject, "emit", RUNG, OWN) == RUNG:
        options = options_of(shape, "emit", arch=arch)
        rung, workload = job_of(as_rung(subject), options, "emit", EMIT_SHAPES, arch)
        return Code(emit_text(rung, workload, arch, form, twin), rung.id, form, arch)
    if twin:
        raise BadInput("a function of TVM's has no twin: leave out twin=True")
    check_arch(arch)
    own = own_of(subject, kernel, sizes or {}, schedule)
    if form == "tir":
        return Code(own.tir, own.name, form, arch)
    made = kernel_of(own, arch)
    text = made.source
    if form != "cuda":
        binary = compile_kernel(made)
        text = binary.ptx if form == "ptx" else disassemble(binary)
    return Code(
        text, own.name, form, arch, made.entry, made.params, made.grid, made.block, made.dynamic_shared
    )
