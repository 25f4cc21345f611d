"""Made-up measurements for tests of everything around them. No number here was measured on any GPU."""

from types import SimpleNamespace

from tir_schedules.ladders.problems import KINDS, Problem, jobs_of, square_shapes
from tir_schedules.ladders.registry import find, ladder
from tir_schedules.ladders.sgemm import offered
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.subjects.results import document
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

DEVICE = {
    "name": "Made-up GPU",
    "arch": "sm_90",
    "driver_version": "1.2.3",
    "clocks.max.sm": "1980",
    "power.limit": "700.00",
}
SOURCE = {
    "command": "bench sgemm --sizes 1024",
    "date": "2041-02-03T04:05:06Z",
    "versions": {"python": "3.10.0", "apache-tvm": "0.27.0", "nvcc": "13.0.88"},
    "git_revision": "0123456789abcdef0123456789abcdef01234567",
}
LIMITS = [
    {"name": "copy bandwidth", "rate": 4000.0, "unit": "GB/s"},
    {"name": "fp32 peak", "rate": 66.9, "unit": "TFLOPS", "sm_mhz": 1980},
]

OF_PARTS = [rung for rung in ladder("sgemm") if offered(rung)["products"] != ("float32",)]
MULTIPLYING_FLOAT32 = [rung for rung in ladder("sgemm") if rung not in OF_PARTS]
"""The rungs of SGEMM that are measured on the same workloads, and others."""


def packed_subjects():
    """Subjects of all families, a sum of two launches and a vendor's library among them, with cubins that are
    none."""
    resources = Resources(32, 1024)

    def binary(entry, params, arch="sm_90"):
        kernel = Kernel(f"{entry} (tir)", "", entry, params, (4, 2, 1), (32, 8, 1), arch, 2048)
        return Binary(kernel, "", f"cubin of {entry}".encode() * 9, resources)

    sums = tuple(binary(name, ("X", "Y", "N")) for name in ("first", "second"))
    half = HalfGemm(64, 64, 64, "nn", "float32")
    return [
        Subject("sgemm", "sgemm/naive", "schedule", Gemm(64, 64, 64), (binary("naive", ("A", "B", "C")),)),
        Subject("hgemm", "hgemm/wmma_naive", "twin", half, (binary("wmma", ("A", "B", "C")),)),
        Subject("reduce", "reduce/shuffle", "schedule", Reduction(1024, "float32"), sums),
        Subject("reduce", "CUB", "vendor", Reduction(1024, "float32")),
    ]


def row_of(subject, microseconds, **others):
    """A row as `measure` makes it, from a time."""
    workload = subject.workload
    gemm = hasattr(workload, "k")
    rate = workload.flops / microseconds / 1e6 if gemm else workload.bytes / microseconds / 1e3
    samples = [round(microseconds * factor, 3) for factor in (0.999, 1.0, 1.001)]
    facts = {
        "samples_us": samples,
        "median_us": samples[1],
        "spread": 0.001,
        "rate": rate,
        "unit": "TFLOPS" if gemm else "GB/s",
    }
    return {
        **subject.identity(),
        **facts,
        "sm_mhz": [1975, 1980],
        "throttled": [],
        "verified": True,
        **others,
    }


def invented_microseconds(subject, rung_number):
    """Later rungs are faster, twins 1% slower, vendors 5% faster than the twelfth rung; small problems are
    inefficient."""
    workload = subject.workload
    work = workload.flops / 60e6 if hasattr(workload, "k") else workload.bytes / 4e6
    number, penalty = (
        (12, 0.95) if subject.form == "vendor" else (rung_number, 1.01 if subject.form == "twin" else 1.0)
    )
    return penalty * (2.0 + work * (1 + 3 / (1 + number)))


def with_cublaslt(results, rates, **detail):
    """The same with a row of cuBLASLt for each of cuBLAS. rates: by size, such as 1024."""
    candidate = {"algorithm": 66, "tile": 1, "stages": 2, "split_k": 1, "cluster": 0, "workspace_bytes": 0}
    found = {"chosen": 1, "candidates": [candidate] * 2, **detail}
    rows = [
        {**row, "name": "cuBLASLt", "rate": rates[row["workload"]["m"]], "vendor_detail": found}
        for row in results["rows"]
        if row["name"] == "cuBLAS"
    ]
    return {**results, "rows": results["rows"] + rows}


def results(*names, sizes=(1024, 4096), change=lambda row: row, refuse=lambda subject: "", n=(), **kinds):
    """A results document of rungs at sizes. change: applied to each row; refuse: a reason for those that are
    to be refused."""
    rungs = [rung for name in names for rung in find(name) if rung not in OF_PARTS or name == rung.id]
    by_workload = {}
    for number, rung in enumerate(rungs):
        asked = {name: kinds[name] for name in KINDS[rung.family] if name in kinds}
        shapes = square_shapes(rung.family, n if n and rung.family == "reduce" else sizes)
        problems = {rung.family: [Problem(rung.family, shape, **asked) for shape in shapes]}
        for _, workload in jobs_of([rung], problems, {}):
            subjects = by_workload.setdefault(workload, [])
            subjects += [
                (number, Subject(rung.family, rung.id, form, workload)) for form in ("schedule", "twin")
            ]
    rows, refused = [], []
    for workload, numbered in by_workload.items():
        family = numbered[0][1].family
        numbered.append((12, Subject(family, "CUB" if family == "reduce" else "cuBLAS", "vendor", workload)))
        for number, subject in numbered:
            if refuse(subject):
                refused.append(subject.refused(refuse(subject)))
            else:
                rows.append(change(row_of(subject, invented_microseconds(subject, number))))
    measurement = SimpleNamespace(rows=rows, refused=refused, limits=LIMITS, notes=[], device=DEVICE)
    return document(SOURCE, measurement, {"sustained": False}, [])
