"""Device functions that are called: arguments and results of every shape, recursion, pointers to functions,
and lanes that go different ways."""

from functools import lru_cache

import numpy as np
import pytest
from cuda_kernels import run

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
FAR int total(int* a, int n) { int sum = 0; for (int i = 0; i < n; i++) sum += a[i]; return sum; }
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
__global__ void beyond(int* Y) {
  int a[8];
  for (int k = 0; k < 8; k++) a[k] = k;
  Y[threadIdx.x] = total(a, 9 - where_to);
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
    ("beyond", "uninitialized", "uses what a function returned without a value"),
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
