"""Functions of TensorIR that somebody might have, and schedules of them."""

import tvm
from tvm import s_tir
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((32, 32)), B: T.Buffer((32, 32)), C: T.Buffer((32, 32))):
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(sch):
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    by, ty = sch.split(i, [None, 8])
    bx, tx = sch.split(j, [None, 8])
    sch.reorder(by, bx, ty, tx, k)
    for loop, axis in zip((by, bx, ty, tx), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")):
        sch.bind(loop, axis)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), tx)


@T.prim_func(private=True, s_tir=True)
def row_sums(X: T.Buffer((32, 100)), Y: T.Buffer((32,))):
    for i, k in T.grid(32, 100):
        with T.sblock("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vi, vk]


def rows(sch):
    sch.bind(sch.get_loops(sch.get_sblock(name="Y"))[0], "threadIdx.x")


@T.prim_func(s_tir=True)
def softmax(X: T.Buffer((4, 32)), Y: T.Buffer((4, 32))):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.sblock("row"):
                vb = T.axis.spatial(4, b)
                vt = T.axis.spatial(32, t)
                total = T.sblock_alloc_buffer((2,), scope="local")
                total[0] = T.float32(-3e38)
                for k in range(32):
                    total[0] = T.max(total[0], X[vb, k])
                total[1] = T.float32(0)
                for k in range(32):
                    total[1] = total[1] + T.exp(X[vb, k] - total[0])
                Y[vb, vt] = T.exp(X[vb, vt] - total[0]) / total[1]


@T.prim_func(s_tir=True)
def int8_dot(A: T.Buffer((16, 64), "int8"), B: T.Buffer((16, 64), "int8"), C: T.Buffer((16, 16), "int32")):
    for i in T.thread_binding(16, "blockIdx.x"):
        for j in T.thread_binding(16, "threadIdx.x"):
            for k in range(64):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])


@T.prim_func(s_tir=True)
def bounds(X: T.Buffer((8, 64)), low: T.Buffer((8,)), high: T.Buffer((8,))):
    for b in T.thread_binding(8, "threadIdx.x"):
        with T.sblock("row"):
            vb = T.axis.spatial(8, b)
            low[vb] = X[vb, 0]
            high[vb] = X[vb, 0]
            for k in range(64):
                low[vb] = T.min(low[vb], X[vb, k])
                high[vb] = T.max(high[vb], X[vb, k])


@T.prim_func(s_tir=True)
def scaled_in_place(X: T.Buffer((256,)), alpha: T.float32):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            with T.sblock("X"):
                v = T.axis.spatial(256, b * 64 + t)
                X[v] = X[v] * alpha


@T.prim_func(s_tir=True)
def doubled_bfloat16(X: T.Buffer((256,), "bfloat16"), Y: T.Buffer((256,), "bfloat16")):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            with T.sblock("Y"):
                v = T.axis.spatial(256, b * 64 + t)
                Y[v] = X[v] + X[v]


@T.prim_func(s_tir=True)
def of_any_size(a: T.handle, b: T.handle, m: T.int32, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * s


def flat(sch):
    every = sch.fuse(*sch.get_loops(sch.get_sblock("B")))
    for loop, axis in zip(sch.split(every, [None, 64]), ("blockIdx.x", "threadIdx.x")):
        sch.bind(loop, axis)


@T.prim_func
def by_hand(A: T.Buffer((128,)), B: T.Buffer((128,))):
    T.func_attr({"global_symbol": "by_hand"})
    block = T.launch_thread("blockIdx.x", 2)
    thread = T.launch_thread("threadIdx.x", 64)
    B[block * 64 + thread] = A[block * 64 + thread] + T.float32(1)


@T.prim_func(s_tir=True)
def of_float8(A: T.Buffer((32,), "float8_e4m3fn"), B: T.Buffer((32,), "float8_e4m3fn")):
    for i in T.thread_binding(32, "threadIdx.x"):
        with T.sblock("B"):
            v = T.axis.spatial(32, i)
            B[v] = A[v]


@T.prim_func(s_tir=True)
def two_kernels(A: T.Buffer((64,)), B: T.Buffer((64,)), C: T.Buffer((64,))):
    for i in T.thread_binding(64, "threadIdx.x"):
        with T.sblock("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] + T.float32(1)
    for i in T.thread_binding(64, "threadIdx.x"):
        with T.sblock("C"):
            v = T.axis.spatial(64, i)
            C[v] = B[v] * T.float32(2)


@T.prim_func(s_tir=True)
def masked(A: T.Buffer((64,)), M: T.Buffer((64,), "bool"), B: T.Buffer((64,))):
    for i in T.thread_binding(64, "threadIdx.x"):
        with T.sblock("B"):
            v = T.axis.spatial(64, i)
            B[v] = T.if_then_else(M[v], A[v], T.float32(0))


@T.prim_func(s_tir=True)
def reads_beyond(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in range(64):
        with T.sblock("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v + 1]


@T.prim_func(s_tir=True)
def reads_beyond_guarded(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in range(64):
        with T.sblock("B"):
            v = T.axis.spatial(64, i)
            B[v] = T.if_then_else(v < 63, A[v + 1], T.float32(0))


@T.prim_func(s_tir=True)
def writes_before(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in range(64):
        with T.sblock("B"):
            v = T.axis.spatial(64, i)
            B[v - 1] = A[v]


@T.prim_func(s_tir=True)
def reads_beyond_a_row(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    for i, j in T.grid(4, 8):
        with T.sblock("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w + 1]


def scheduled(function=matmul, schedule=tiled):
    """A Schedule, as a user has one; TVM changes a function in place, so it is of a copy."""
    sch = s_tir.Schedule(tvm.ir.load_json(tvm.ir.save_json(function)))
    schedule(sch)
    return sch
