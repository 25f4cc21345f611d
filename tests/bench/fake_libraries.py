"""cuBLAS and cuBLASLt that are none: they do with numpy, on this computer, what their manuals say."""

import ctypes
from types import SimpleNamespace

import numpy as np

from tir_schedules.workloads import element_type

MACHINE = SimpleNamespace(xp=np, address=lambda array: array.ctypes.data, arch="sm_90")
STREAM = SimpleNamespace(ptr=77)
TYPES = {number: element_type(name) for number, name in ((0, "float32"), (2, "float16"), (14, "bfloat16"))}
SCALARS = {64: np.float16, 68: np.float32}
"""cublasComputeType_t -> the type of alpha and beta."""


class Function:
    """Takes arguments as ctypes would convert them."""

    def __init__(self, call):
        self.call, self.argtypes, self.restype = call, None, None

    def __call__(self, *arguments):
        if self.argtypes is not None:
            assert len(arguments) == len(self.argtypes)
        return self.call(*arguments)


class Fake:
    """log: names and arguments of the calls."""

    def __init__(self, status=0):
        self.log, self.status = [], status

    def __getattr__(self, name):
        function = Function(getattr(type(self), f"do_{name}", self.only_logged).__get__(self))
        logged = Function(lambda *arguments: self.log.append((name, arguments)) or function.call(*arguments))
        setattr(self, name, logged)
        return logged

    def only_logged(self, *arguments):
        return 0


class FakeCublas(Fake):
    """cublasGemmEx on column-major matrices."""

    def do_cublasGetStatusName(self, status):
        return b"CUBLAS_STATUS_NOT_SUPPORTED"

    def do_cublasGemmEx(
        self,
        handle,
        trans_a,
        trans_b,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        b,
        b_type,
        ldb,
        beta,
        c,
        c_type,
        ldc,
        compute,
        algorithm,
    ):
        if self.status:
            return self.status
        assert scalars(alpha, beta, compute) == (1, 0)
        left = column_major(a, lda, *((k, m) if trans_a else (m, k)), TYPES[a_type])
        right = column_major(b, ldb, *((n, k) if trans_b else (k, n)), TYPES[b_type])
        multiply(
            left.T if trans_a else left,
            right.T if trans_b else right,
            column_major(c, ldc, m, n, TYPES[c_type]),
        )
        return 0


class FakeCublasLt(Fake):
    """cublasLtMatmul with `count` algorithms, of which the one at `unable` says that it cannot."""

    def __init__(self, count=3, unable=None, status=0):
        super().__init__(status)
        self.count, self.unable, self.things = count, unable, []

    def create(self, out, *fields):
        self.things.append({"fields": fields})
        out._obj.value = len(self.things)
        return 0

    do_cublasLtCreate = do_cublasLtMatmulPreferenceCreate = create
    do_cublasLtMatmulDescCreate = do_cublasLtMatrixLayoutCreate = create

    def set(self, thing, attribute, value, size):
        assert size == ctypes.sizeof(value._obj)
        self.of(thing)[attribute] = value._obj.value
        return 0

    do_cublasLtMatmulDescSetAttribute = do_cublasLtMatmulPreferenceSetAttribute = set

    def of(self, thing):
        return self.things[thing.value - 1]

    def do_cublasLtGetStatusName(self, status):
        return b"CUBLAS_STATUS_NOT_SUPPORTED"

    def do_cublasLtGetVersion(self):
        return 130100

    def do_cublasLtMatmulAlgoGetHeuristic(
        self, handle, operation, a, b, c, d, preference, asked, found, count
    ):
        assert asked == len(found) == 32 and self.of(preference)[1] == 64 << 20
        for index in range(self.count):
            found[index].algorithm[0] = 60 + index
            found[index].workspace = 1 << index
            found[index].status = 15 if index == self.unable else 0
        count._obj.value = self.count
        return self.status

    def do_cublasLtMatmulAlgoConfigGetAttribute(self, algorithm, attribute, value, size, written):
        assert size == {8: 2}.get(attribute, 4)
        value._obj.value = (0 if attribute else int(read(algorithm, 1, np.uint64)[0])) + 100 * attribute
        return 0

    def do_cublasLtMatmul(
        self,
        handle,
        operation,
        alpha,
        a,
        a_layout,
        b,
        b_layout,
        beta,
        c,
        c_layout,
        d,
        d_layout,
        algorithm,
        workspace,
        size,
        stream,
    ):
        compute, scalar = self.of(operation)["fields"]
        assert TYPES[scalar] == SCALARS[compute] and scalars(alpha, beta, compute) == (1, 0)
        assert (c, c_layout.value, size, stream) == (d, d_layout.value, 64 << 20, 77)
        left, right, result = (self.matrix(*one) for one in ((a, a_layout), (b, b_layout), (c, c_layout)))
        multiply(left.T if self.of(operation)[3] else left, right, result)
        return 0

    def matrix(self, address, layout):
        kind, rows, columns, leading = self.of(layout)["fields"]
        return column_major(address, leading, rows, columns, TYPES[kind])


def multiply(left, right, result):
    result[...] = (left.astype(np.float64) @ right.astype(np.float64)).astype(result.dtype)


def scalars(alpha, beta, compute):
    return tuple(read(address, 1, SCALARS[compute])[0] for address in (alpha, beta))


def read(address, count, dtype):
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def column_major(address, leading, rows, columns, dtype):
    assert leading >= rows
    return read(address, leading * columns, dtype).reshape(columns, leading).T[:rows]
