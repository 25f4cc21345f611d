"""Device functions that are called: arguments and results of every shape, recursion, pointers to functions,
and lanes that go different ways."""

from functools import lru_cache

import numpy as np
import pytest
from cuda_kernels import run
from ptx_kernels import launch

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

SOURCE = r"""
#define FAR __device__ __noinline__
struct Big { double a; int b[7]; char c; };
struct Padded { char a; double b; short c; };
struct Node { int key; Node *left, *right; };
typedef int (*Binary)(int, int);

FAR Big make(int x) { Big r; r.a = x; for (int i = 0; i < 7; i++) r.b[i] = x * i; r.c = x; return r; }
FAR int pick(Big s, int i) { return s.b[i] + (int)s.a + s.c; }
FAR double padded(Padded p, char c, bool q, unsigned char u, float4 v, __int128 w) {
  return p.a + p.b + p.c + c + q + u + v.x * v.w + (long long)(w >> 64);
}
FAR int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ bool odd(int n);
FAR bool even(int n) { return n == 0 ? true : odd(n - 1); }
FAR bool odd(int n) { return n == 0 ? false : even(n - 1); }
FAR void sort(int* a, int low, int high) {
  if (low >= high) return;
  int pivot = a[high], i = low;
  for (int j = low; j < high; j++)
    if (a[j] < pivot) { int t = a[i]; a[i] = a[j]; a[j] = t; i++; }
  a[high] = a[i], a[i] = pivot;
  sort(a, low, i - 1);
  sort(a, i + 1, high);
}
FAR int deep(Big s, int i) {
  if (i <= 0) return s.b[0];
  int own[4];
  for (int k = 0; k < 4; k++) own[k] = s.b[k] + i;
  s.b[0] = own[i & 3];
  return deep(s, i - 1) + own[(i + 1) & 3];
}
FAR int add(int a, int b) { return a + b; }
FAR int multiply(int a, int b) { return a * b; }
FAR int apply(Binary f, int n, int so_far) { return n == 0 ? so_far : apply(f, n - 1, f(so_far, n) % 1000); }
__device__ Binary table[3] = {add, multiply, add};
struct Shape { __device__ virtual int area(int x) const = 0; };
struct Square : Shape { __device__ int area(int x) const override { return x * x; } };
struct Strip : Shape { int width = 5; __device__ int area(int x) const override { return x * width; } };
FAR void early(int* sum, int n) {
  for (int i = 0; i < n; i++) { if (i * i > n) return; *sum += i; }
  *sum = -*sum;
}
FAR float across(float x) {
  __shared__ float sums[2];
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  x = sums[0] + sums[1];
  __syncthreads();
  return x;
}
FAR int on_stack(int n) {
  int* a = (int*)alloca(n * 4), sum = 0;
  for (int i = 0; i < n; i++) a[i] = i * i;
  for (int i = 0; i < n; i++) sum += a[(i * 3) % n];
  return sum;
}
FAR Node* insert(Node* n, int key) {
  if (!n) { n = new Node; n->key = key; n->left = n->right = 0; return n; }
  if (key < n->key) n->left = insert(n->left, key); else n->right = insert(n->right, key);
  return n;
}
FAR int walk(Node* n, int* out, int at) {
  if (!n) return at;
  at = walk(n->left, out, at);
  out[at++] = n->key;
  return walk(n->right, out, at);
}
FAR void remove(Node* n) { if (n) { remove(n->left); remove(n->right); delete n; } }
FAR int* dangling(int i) { int own[4] = {1, 2, 3, 4}; int* volatile p = own; return p + i % 4; }
__device__ volatile int where_to;
FAR int either(int* given, int i) {
  int own[8];
  for (int k = 0; k < 8; k++) own[k] = k;
  int* from = i % 3 ? given : own;
  from[i % 8] += 100;
  return from[i % 8] + own[7];
}
FAR int hidden(int i) { int own[8]; for (int k = 0; k < 8; k++) own[k] = k; return own[i]; }
FAR int unset(int i) { int own[8]; for (int k = 0; k < i; k++) own[k] = k; return own[i + where_to]; }

extern "C" {
__global__ void k(int* Y) { Big b = make(threadIdx.x); Y[threadIdx.x] = b.a + b.b[threadIdx.x % 7] + b.c; }
__global__ void passes(int* Y) { Y[threadIdx.x] = pick(make(threadIdx.x), threadIdx.x % 7); }
__global__ void scalars(int* Y) {
  const int t = threadIdx.x;
  Padded p = {char(-t), 0.5 * t, short(-3 * t)};
  Y[t] = 4 * padded(p, t - 40, t & 1, 200 + t, make_float4(t, 0, 0, 2), (__int128)(-t) << 64);
}
__global__ void ack(int* Y) { Y[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 5); }
__global__ void mutual(int* Y) { Y[threadIdx.x] = even(threadIdx.x % 19); }
__global__ void sorts(int* Y) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = (i * 7 + threadIdx.x) % 16;
  sort(a, 0, 15);
  Y[threadIdx.x] = a[threadIdx.x % 16] == threadIdx.x % 16;
}
__global__ void deeper(int* Y) { Big b = make(threadIdx.x); Y[threadIdx.x] = deep(b, threadIdx.x % 6); }
__global__ void pointers(int* Y) {
  const int t = threadIdx.x;
  Binary f = t % 2 ? add : multiply;
  Y[t] = table[t % 3](t, 3) + 1000 * f(t, 5) + apply(f, t % 5, 1);
}
__global__ void virtuals(int* Y) {
  Square a; Strip b;
  const Shape* s = threadIdx.x % 3 ? (const Shape*)&a : (const Shape*)&b;
  Y[threadIdx.x] = s->area(threadIdx.x);
}
__global__ void returns(int* Y) {
  int sum = 0;
  if (threadIdx.x % 3) early(&sum, threadIdx.x);
  __syncwarp();
  Y[threadIdx.x] = sum;
}
__global__ void barrier(int* Y) { Y[threadIdx.x] = across(threadIdx.x) + across(1); }
__global__ void allocas(int* Y) {
  int sum = 0;
  for (int round = 0; round < 100; round++) sum += on_stack(threadIdx.x % 7 + 1);
  Y[threadIdx.x] = sum;
}
__global__ void too_much(int* Y) { Y[threadIdx.x] = on_stack(200 + threadIdx.x); }
__global__ void trees(int* Y) {
  Node* root = 0;
  for (int i = 0; i < 10; i++) root = insert(root, (i * 7 + threadIdx.x) % 10);
  int out[10];
  walk(root, out, 0);
  remove(root);
  Y[threadIdx.x] = out[threadIdx.x % 10];
}
__global__ void chooses(int* Y) {
  int a[64];
  for (int k = 0; k < 64; k++) a[k] = 10 * k;
  Y[threadIdx.x] = either(a + 8, threadIdx.x);
}
__global__ void dangles(int* Y) { Y[threadIdx.x] = *dangling(threadIdx.x); }
__global__ void hides(int* Y) { Y[threadIdx.x] = hidden(threadIdx.x % 9); }
__global__ void unsets(int* Y) { Y[threadIdx.x] = unset(threadIdx.x % 7 + 1) + unset(2); }
__global__ void null(int* Y) {
  Binary f = threadIdx.x < 60 ? add : (Binary)(size_t)where_to;
  Y[threadIdx.x] = f(1, 2);
}
__global__ void both(int* Y) {
  Y[threadIdx.x] = threadIdx.x % 2 ? add(threadIdx.x, 1) : multiply(threadIdx.x, 2);
}
__global__ void texture(int* Y, cudaTextureObject_t t) { Y[threadIdx.x] = tex1Dfetch<int>(t, threadIdx.x); }
}
"""
T = np.arange(64)


@lru_cache(maxsize=None)
def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def deep(b, i):
    if i <= 0:
        return b[0]
    own = [value + i for value in b[:4]]
    return deep([own[i & 3], *b[1:]], i - 1) + own[(i + 1) & 3]


def fold(f, n):
    result = 1
    for k in range(n, 0, -1):
        result = f(result, k) % 1000
    return result


def pointers(t):
    add, multiply = (lambda a, b: a + b), (lambda a, b: a * b)
    f = add if t % 2 else multiply
    return (add, multiply, add)[t % 3](t, 3) + 1000 * f(t, 5) + fold(f, t % 5)


def early(n):
    total = 0
    for i in range(n):
        if i * i > n:
            return total
        total += i
    return -total


def scalars(t):
    q, unsigned = t & 1, (200 + t) % 256
    return int(4 * (-t + 0.5 * t - 3 * t + (t - 40) + q + unsigned + 2 * t - t))


EXPECTED = {
    "k": lambda t: t + t * (t % 7) + t,
    "passes": lambda t: t + t * (t % 7) + t,
    "scalars": scalars,
    "ack": lambda t: ackermann(t % 3, t % 5),
    "mutual": lambda t: t % 19 % 2 == 0,
    "sorts": lambda t: 1,
    "deeper": lambda t: deep([t * i for i in range(7)], t % 6),
    "pointers": pointers,
    "virtuals": lambda t: t * t if t % 3 else 5 * t,
    "returns": lambda t: early(t) if t % 3 else 0,
    "barrier": lambda t: 2016 + 64,
    "allocas": lambda t: 100 * sum(((i * 3) % (t % 7 + 1)) ** 2 for i in range(t % 7 + 1)),
    "trees": lambda t: t % 10,
    "chooses": lambda t: 107 + (80 + 10 * (t % 8) if t % 3 else t % 8) + 100 * (t % 24 == 15),
    "both": lambda t: t + 1 if t % 2 else 2 * t,
}


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("entry", EXPECTED)
def test_results_are_those_of_python(entry, order):
    result, execution = run(SOURCE, entry, warp_order=order)
    assert execution.findings == ()
    assert result.tolist() == [EXPECTED[entry](int(t)) for t in T]


# (kernel, kind of its finding, what its message says)
FAULTS = [
    ("hides", "out_of_bounds", "an array in local memory at byte 32, out of bounds; it has 32 bytes"),
    ("dangles", "uninitialized", "local memory"),
    ("unsets", "uninitialized", "uses what a function returned without a value"),
    ("too_much", "stack_overflow", "the stack has 1024 bytes"),
    ("null", "trap", "calls a function at 0x0, where there is none"),
]


@pytest.mark.parametrize("entry, kind, message", FAULTS)
def test_faults_in_functions_are_found(entry, kind, message):
    _, execution = run(SOURCE, entry)
    assert [finding.kind for finding in execution.findings] == [kind]
    assert message in execution.findings[0].message and execution.findings[0].location.line


def test_the_stack_can_be_larger():
    _, execution = run(SOURCE, "too_much", stack=1 << 12)
    assert execution.findings == ()


def test_textures_are_refused_with_what_would_be_right():
    with pytest.raises(UnsupportedInstruction, match=r"test_kernel\.cu:\d+\): .* tex\.1d.*through a pointer"):
        run(SOURCE, "texture", {"T": 1})


# ---- what nvcc rarely writes ---
PTX = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) unknown (.param .b32 a);
.extern .func cudaDeviceSynchronize ();
.extern .func (.param .b64 r) memcpy (.param .b64 a, .param .b64 b, .param .b64 c);
.extern .func (.param .b64 r) memset (.param .b64 a, .param .b32 b, .param .b64 c);
.func (.param .b32 r) twice (.param .b32 a);
.alias same, twice;
.func (.param .b32 r) twice (.param .b32 a) .noinline
{ .reg .b32 x; ld.param.b32 x, [a]; shl.b32 x, x, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) thrice (.param .b32 a)
{ .reg .b32 x; .reg .pred p; ld.param.b32 x, [a];
setp.gt.u32 p, x, 40; mul.lo.u32 x, x, 3; st.param.b32 [r], x;
@p ret; add.u32 x, x, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) strange (.param .b32 a) { tex.2d.v4.f32.f32 {%f1, %f2}, [a, {%f1, %f2}]; ret; }
.func silent () { ret; }
.func (.param .b32 r) unset (.param .b32 a)
{ .reg .b32 x, none; add.u32 x, none, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) again (.param .b32 a)
{ .reg .b32 n, m, x, y, none; .reg .pred p; ld.param.b32 n, [a]; setp.eq.u32 p, n, 0;
mov.u32 x, n; mov.u32 y, 0; @p mov.u32 x, none; @p bra LAST; sub.u32 m, n, 1;
{ .param .b32 given; .param .b32 taken; st.param.b32 [given], m; call (taken), again, (given);
ld.param.b32 y, [taken]; }
add.u32 y, x, y;
LAST: st.param.b32 [r], y; ret; }
.global .u64 pointers[2] = {twice, thrice};
.visible .entry test(.param .u64 Y)
{ .reg .b64 y, f; .reg .b32 t, d, s; .reg .pred p;
ld.param.u64 y, [Y]; mov.u32 t, %tid.x; mov.u32 d, 7; mul.lo.u32 s, t, 4; cvt.u64.u32 f, s; add.u64 y, y, f;
setp.lt.u32 p, t, 8;
BODY
st.global.u32 [y], d; ret; }
"""
CALL = "{{ .param .b32 a; .param .b32 r; st.param.b32 [a], t; {call}; ld.param.b32 d, [r]; }}"
BYTES = """.local .align 8 .b8 from[8]; .local .align 8 .b8 to[16]; .reg .b64 a, b;
mov.u64 a, from; cvta.local.u64 a, a; mov.u64 b, to; cvta.local.u64 b, b;
{ .param .b64 p; .param .b32 v; .param .b64 n; .param .b64 r; st.param.b64 [p], a; st.param.b32 [v], t;
st.param.b64 [n], LENGTH; call (r), memset, (p, v, n); ld.param.b64 a, [r]; }
{ .param .b64 p; .param .b64 q; .param .b64 n; .param .b64 r; st.param.b64 [p], b; st.param.b64 [q], a;
st.param.b64 [n], 8; call (r), memcpy, (p, q, n); ld.param.b64 b, [r]; }
ld.u32 d, [b+4];"""
SWITCH = """table: .branchtargets L0, L1, L2, L1;
and.b32 s, t, 3; {guard}brx.idx s, table;
L0: add.u32 d, t, 100; bra END;
L1: add.u32 d, t, 200; bra END;
L2: add.u32 d, t, 300;
END:"""


def thrice(t):
    return 3 * t + (t <= 40)


BODIES = {
    "direct": (CALL.format(call="call.uni (r), twice, (a)"), lambda t: 2 * t),
    "alias": (CALL.format(call="call (r), same, (a)"), lambda t: 2 * t),
    "undefined in the innermost": (
        "and.b32 t, t, 7; " + CALL.format(call="call (r), again, (a)"),
        lambda t: t % 8 * (t % 8 + 1) // 2,
    ),
    "guarded ret": (CALL.format(call="call (r), thrice, (a)"), thrice),
    "guarded call": (
        CALL.format(call="st.param.b32 [a], 5; @!p call (r), thrice, (a)").replace(
            "ld.param.b32 d", "@!p ld.param.b32 d"
        ),
        lambda t: 7 if t < 8 else 16,
    ),
    "no arguments": ("call.uni silent; call silent, ();", lambda t: 7),
    "named targets": (
        "{ T: .calltargets twice, thrice; .param .b32 a; .param .b32 r; st.param.b32 [a], t;"
        "and.b32 s, t, 1; mul.wide.u32 f, s, 8; .reg .b64 q; mov.u64 q, pointers; add.u64 q, q, f;"
        "ld.global.u64 q, [q]; call (r), q, (a), T; ld.param.b32 d, [r]; }",
        lambda t: thrice(t) if t % 2 else 2 * t,
    ),
    "memset and memcpy": (BYTES.replace("LENGTH", "8"), lambda t: 0x01010101 * t),
    "switch": (SWITCH.format(guard=""), lambda t: t + (100, 200, 300, 200)[t % 4]),
    "guarded switch": (
        SWITCH.format(guard="@!p "),
        lambda t: t + (100 if t < 8 else (100, 200, 300, 200)[t % 4]),
    ),
}


def of_ptx(body):
    y = np.zeros(64, np.uint32)
    execution = launch(PTX.replace("BODY", body), {"Y": y}, ("Y",), block=(64, 1, 1))
    return y, execution.findings


@pytest.mark.parametrize("what", BODIES)
def test_ptx_written_by_hand(what):
    body, expected = BODIES[what]
    result, findings = of_ptx(body)
    assert findings == () and result.tolist() == [expected(int(t)) for t in T]


def test_a_switch_past_its_table_is_found():
    _, findings = of_ptx(SWITCH.format(guard="").replace("and.b32 s, t, 3", "shr.u32 s, t, 3"))
    assert [finding.kind for finding in findings] == ["trap"]
    assert "entry 4 of a table of branches" in findings[0].message


def test_memset_past_the_end_is_found():
    _, findings = of_ptx(BYTES.replace("LENGTH", "900"))
    assert [finding.kind for finding in findings] == ["out_of_bounds"]
    assert "writes 1 bytes of local memory" in findings[0].message


def test_a_variable_of_a_function_that_nothing_has_written_is_found():
    _, findings = of_ptx(CALL.format(call="call (r), unset, (a)"))
    assert [finding.message for finding in findings] == ["uses what a function returned without a value"]


REFUSED = {
    "call (r), unknown, (a)": "unknown, which the PTX does not define; define it in the same file",
    "call cudaDeviceSynchronize": "cudaDeviceSynchronize, .*a kernel cannot wait for its own launches",
    "call (r), strange, (a)": "tex.2d.*read the array through a pointer",
    "call (r), twice, (a, a)": "2 arguments of calls where the function has 1",
    "call (r), twice, (t)": "passed in registers: use .param",
    "call (r), f, (a)": "without a .callprototype",
    "call (r), thrice, (a); st.param.b32 [a], t; call silent": "a call between a st.param",
    "call (r), thrice, (a); call silent": "read after another call",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_cannot_be_called_is_refused_by_name(call):
    with pytest.raises(UnsupportedInstruction, match=rf"PTX line \d+: .*{REFUSED[call]}"):
        of_ptx(CALL.format(call=call))


@pytest.mark.parametrize(
    "instruction, remedy",
    [
        ("tex.2d.v4.f32.s32 {d, d, d, d}, [y, {t, t}];", "textures: read the array through a pointer"),
        ("txq.width.b32 d, [y];", "textures"),
        ("suld.b.1d.b32.trap d, [y, {t}];", "surfaces: write the array through a pointer"),
        ("sust.b.1d.b32.trap [y, {t}], d;", "surfaces"),
        ("mapa.u64 y, y, 1;", "thread block clusters"),
        ("barrier.cluster.arrive;", "thread block clusters"),
        ("griddepcontrol.wait;", "programmatic dependent launch"),
    ],
)
def test_what_is_refused_on_purpose_says_what_would_be_right(instruction, remedy):
    with pytest.raises(
        UnsupportedInstruction, match=rf"PTX line \d+: .*{instruction.split()[0].strip(';')} \({remedy}"
    ):
        of_ptx(instruction)


def test_a_kernel_is_not_refused_for_what_another_has():
    head, entry, kernel = PTX.partition(".visible")
    other = kernel.replace(" test(", " other(").replace(
        "BODY", "tex.2d.v4.f32.s32 {d, d, d, d}, [y, {t, t}];"
    )
    text = head + entry + other + entry + kernel.replace("BODY", "")
    y = np.zeros(64, np.uint32)
    assert launch(text, {"Y": y}, ("Y",), block=(64, 1, 1)).findings == () and (y == 7).all()


def test_a_function_that_nothing_calls_may_hold_anything():
    assert of_ptx("")[1] == ()
