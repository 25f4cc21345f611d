"""`pytest --tir-check FILE.cu`: the `// check:` comments of kernels as tests, one for each check.

Without the option, or `tir_check = true` in pytest's settings, it adds options to the help and does nothing.
Nothing but pytest is imported before a file is collected.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import pytest

if TYPE_CHECKING:
    from tir_schedules.check.preparing import Request

OPTIONS = {
    "tir_check": "run the `// check:` comments of CUDA files as tests, on the CPU machine of tir_schedules",
    "tir_check_python": "the same of `# check:` comments in Python files with Triton kernels or CUDA",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tir_schedules", "kernels that are checked without a GPU")
    for name, text in OPTIONS.items():
        group.addoption(f"--{name.replace('_', '-')}", action="store_true", help=text)
        parser.addini(name, text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    cuda, python = (config.getoption(name) or config.getini(name) for name in OPTIONS)
    endings = (".cu",) * bool(cuda) + (".py",) * bool(python)
    if endings:
        config.pluginmanager.register(Kernels(endings), "tir_schedules kernels")


class Kernels:
    """Collects files with these endings."""

    def __init__(self, endings: tuple[str, ...]):
        self.endings = endings

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> KernelFile | None:
        if file_path.suffix not in self.endings or b"check:" not in file_path.read_bytes():
            return None
        return KernelFile.from_parent(parent, path=file_path)


class KernelFile(pytest.File):
    """A file, which is compiled once for all its checks."""

    def collect(self) -> Iterator[KernelCheck]:
        from tir_schedules.check.options import commented_checks, requests_of
        from tir_schedules.cli.main import parser
        from tir_schedules.errors import TirSchedulesError
        from tir_schedules.machines.choice import CPU_ARCH
        from tir_schedules.source import read_source

        file = Path(os.path.relpath(self.path))
        try:
            source = read_source(file)
            options = parser().parse_args(["check", str(file)])
            checked = commented_checks(source.text, source.file)
            requests = requests_of(options, source, CPU_ARCH) if checked else []
        except TirSchedulesError as error:
            raise self.CollectError(str(error)) from None
        for request in requests:
            line = request.place.rpartition(":")[2]
            kernel = request.launches[0].kernel or file.stem
            yield KernelCheck.from_parent(self, name=f"{line} {kernel}", request=request, others=requests)


class Faulty(Exception):
    """What a check prints of a kernel with a fault."""


class KernelCheck(pytest.Item):
    """One check. request: it; others: all of its file."""

    def __init__(self, *, request: Request, others: list[Request], **given: Any):
        super().__init__(**given)
        self.request, self.others = request, others

    def runtest(self) -> None:
        from tir_schedules.api.checking import check_requests
        from tir_schedules.cli.run import ORDERS
        from tir_schedules.machines.choice import choose

        found = check_requests([self.request], choose("cpu", ORDERS), others=self.others)
        if not found.ok:
            raise Faulty(str(found))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from tir_schedules.errors import TirSchedulesError

        if isinstance(excinfo.value, (Faulty, TirSchedulesError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        line, _, kernel = self.name.partition(" ")
        return self.path, int(line) - 1, f"{self.path.name}:{line} {kernel}"
