"""Kernels with one fault each, and its repair: what test_findings.py runs."""

# (kind, what, body, the part that is at fault, its repair). Two warps; X has 64 elements, Y has 64, N is 64.
FAULTS = [
    ("out_of_bounds", "load past the end", "Y[t] = X[t + 1];", "X[t + 1]", "X[(t + 1) % N]"),
    ("out_of_bounds", "load before the start", "Y[t] = X[t - 1];", "X[t - 1]", "X[t ? t - 1 : 0]"),
    ("out_of_bounds", "load far away", "Y[t] = X[t + 64 * N * N];", "X[t + 64 * N * N]", "X[t]"),
    ("out_of_bounds", "store past the end", "Y[t + N / 64] = X[t];", "Y[t + N / 64]", "Y[t]"),
    (
        "out_of_bounds",
        "shared memory",
        "__shared__ float s[64];\ns[t + N - 63] = X[t];\n__syncthreads();\nY[t] = s[t];",
        "s[t + N - 63]",
        "s[t]",
    ),
    (
        "out_of_bounds",
        "a shared array into the next",
        "__shared__ float a[64], b[64];\na[t] = b[t] = X[t];\n__syncthreads();\nY[t] = a[t + N / 64] + b[t];",
        "t + N / 64",
        "t + N / 65",
    ),
    (
        "out_of_bounds",
        "a local array into the next",
        "float a[8], b[8];\nfor (int i = 0; i < 8; i++) a[i] = b[7 - i] = X[i];\n"
        "Y[t] = a[N / 8] + b[N / 16];",
        "a[N / 8]",
        "a[N / 9]",
    ),
    (
        "misaligned",
        "vector load",
        "const float4 v = reinterpret_cast<const float4*>(X + (t < 8))[t / 8];\n"
        "Y[t] = v.x * v.y + v.z * v.w;",
        "X + (t < 8)",
        "X",
    ),
    (
        "uninitialized",
        "shared memory nobody wrote",
        "__shared__ float s[64];\nif (t < 63) s[t] = X[t];\n__syncthreads();\nY[t] = s[t];",
        "if (t < 63) ",
        "",
    ),
    (
        "uninitialized",
        "element of a local array",
        "float a[8];\nfor (int i = 0; i < N / 16; i++) a[i] = X[i];\nY[t] = a[N / 16];",
        "a[N / 16]",
        "a[N / 17]",
    ),
    (
        "uninitialized",
        "sums that nothing set to zero",
        "float a[4];\n"
        "for (int k = 0; k < N / 4; k++) for (int i = 0; i < 4; i++) a[i] += X[4 * k + i];\n"
        "Y[t] = a[0] + a[1] + a[2] + a[3];",
        "a[4]",
        "a[4] = {}",
    ),
    ("uninitialized", "output nobody wrote", "Y[t] += X[t];", "Y[t] +=", "Y[t] ="),
    (
        "race",
        "no barrier before reading",
        "__shared__ float s[64];\ns[t] = X[t];\n\nY[t] = s[63 - t];",
        "\n\n",
        "\n__syncthreads();\n",
    ),
    (
        "race",
        "no barrier before writing again",
        "__shared__ float s[64];\ns[t] = X[t];\n__syncthreads();\nfloat a = s[63 - t];\n\n"
        "s[t] = 2 * a;\n__syncthreads();\nY[t] = s[t];",
        "\n\n",
        "\n__syncthreads();\n",
    ),
    (
        "race",
        "two warps write one word",
        "__shared__ float s[64];\ns[t % 32] = X[t];\n__syncthreads();\nY[t] = s[t % 32];",
        "s[t % 32] = X[t]",
        "if (t < 32) s[t] = X[t]",
    ),
    (
        "lockstep",
        "lanes of a warp exchange data",
        "__shared__ volatile float s[64];\ns[t] = X[t];\n\nY[t] = s[t ^ 1];",
        "\n\n",
        "\n__syncwarp();\n",
    ),
    (
        "lockstep",
        "a lane overwrites what another reads",
        "__shared__ volatile float s[64];\ns[t] = X[t];\n__syncwarp();\nfloat a = s[t ^ 1];\n\n"
        "s[t] = a;\nY[t] = s[t];",
        "\n\n",
        "\n__syncwarp();\n",
    ),
    (
        "lockstep",
        "a __syncwarp without the lane that wrote",
        "__shared__ volatile float s[64];\ns[t] = X[t];\nif (t % 2) __syncwarp(0xaaaaaaaa);\n"
        "Y[t] = 0;\nif (t % 2) Y[t] = s[t - 1];",
        "if (t % 2) __syncwarp(0xaaaaaaaa)",
        "__syncwarp()",
    ),
    (
        "stale_read",
        "no fence before the flag",
        "__shared__ volatile float s;\n__shared__ volatile int flag;\nif (t == 0) flag = 0;\n"
        "__syncthreads();\n"
        "if (t == 0) { s = X[0]; flag = 1; }\n"
        "if (t == 63) { while (flag == 0); __threadfence(); }\nY[t] = t == 63 ? s : X[t];",
        "flag = 1;",
        "__threadfence_block(); flag = 1;",
    ),
    (
        "stale_read",
        "another cache than that of stores",
        "Y[t] = X[t];\n__syncthreads();\nfloat v = __ldg(Y + 63 - t);\n__syncthreads();\nY[t] = v;",
        "__ldg(Y + 63 - t)",
        "Y[63 - t]",
    ),
    (
        "overlapping_writes",
        "two threads, one element",
        "Y[t] = 0;\n__syncthreads();\nY[t / 2] = X[t];",
        "Y[t / 2]",
        "Y[t]",
    ),
    (
        "write_to_input",
        "store to an input",
        "const_cast<float*>(X)[t] = 1;\nY[t] = X[t];",
        "const_cast<float*>(X)[t] = 1;",
        ";",
    ),
    (
        "in_flight",
        "cp.async before its wait",
        "__shared__ float s[64];\nunsigned a = (unsigned)__cvta_generic_to_shared(s + t);\n"
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(a), "l"(X + t) : "memory");\n'
        "\n\n__syncthreads();\nY[t] = s[t];\n"
        'asm volatile("cp.async.wait_all;" ::: "memory");',
        "\n\n",
        '\nasm volatile("cp.async.wait_all;" ::: "memory");\n',
    ),
    (
        "divergent_aligned",
        "ldmatrix in half a warp",
        "__shared__ __align__(16) float s[64];\ns[t] = X[t];\n__syncthreads();\nunsigned r = 0;\n"
        "if (t % 32 < N / 4) "
        'asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r)'
        ' : "r"((unsigned)__cvta_generic_to_shared(s + t % 8 * 4)));\nY[t] = r;',
        "N / 4",
        "N",
    ),
    (
        "divergent_aligned",
        "a shuffle from a lane that is not there",
        "float a = X[t];\nif (t % 32 < N / 4) a = __shfl_sync(0xffffffff, a, 20);\nY[t] = a;",
        "N / 4",
        "N",
    ),
    (
        "divergent_barrier",
        "half of the block goes on to the next one",
        "if (t < N / 2) __syncthreads();\n__syncthreads();\nY[t] = X[t];",
        "N / 2",
        "N",
    ),
    (
        "divergent_barrier",
        "two barriers in two branches",
        'if (t < N / 2) asm volatile("bar.sync 0;"); else asm volatile("bar.sync 0; // other");\n'
        "Y[t] = X[t];",
        "N / 2",
        "N",
    ),
    (
        "deadlock",
        "a flag nobody sets",
        "volatile float* y = Y;\ny[t] = 1;\nwhile (y[t] > X[0] - 2);",
        "> X",
        "< X",
    ),
    (
        "deadlock",
        "a barrier for more threads than come",
        'asm volatile("bar.sync 1, 96;" ::: "memory");\nY[t] = X[t];',
        "96",
        "64",
    ),
    (
        "endless_loop",
        "a loop that comes back to where it was",
        "Y[t] = X[t];\nfor (int i = N; i > 0; i -= N / 65) Y[t] += i;",
        "N / 65",
        "N / 64",
    ),
    (
        "bad_free",
        "freed twice",
        "int* p = (int*)malloc(4);\n*p = N;\nY[t] = *p;\nfree(p);\nfree(p);",
        "free(p);\nfree(p);",
        "free(p);",
    ),
    (
        "out_of_bounds",
        "past what malloc gave",
        "float* p = (float*)malloc(N * 4);\np[t + N / 64] = X[t];\nY[t] = p[t + N / 64];\nfree(p);",
        "p[t + N / 64] = X[t];\nY[t] = p[t + N / 64]",
        "p[t] = X[t];\nY[t] = p[t]",
    ),
    (
        "out_of_bounds",
        "freed memory",
        "float* p = (float*)malloc(4);\n*p = X[t];\nfree(p);\nY[t] = *(volatile float*)p;",
        "free(p);\nY[t] = *(volatile float*)p;",
        "Y[t] = *p;\nfree(p);",
    ),
    (
        "stack_overflow",
        "recursion too deep",
        "struct R {\nstatic __device__ int f(int n) { return n < 1 ? n : f(n - 1) * 3 + f(n - 2); }\n};\n"
        "Y[t] = R::f(N);",
        "R::f(N)",
        "R::f(N / 16)",
    ),
    (
        "assertion",
        "an assert that fails",
        'if (t >= N / 2) __assert_fail("t < n", "file.cu", 12, "k");\nY[t] = X[t];',
        "N / 2",
        "N",
    ),
    ("trap", "a trap", "if (t >= N / 2) __trap();\nY[t] = X[t];", "N / 2", "N"),
    (
        "endless_loop",
        "a flag nobody sets",
        "volatile float* y = Y;\ny[t] = 1;\nwhile (y[t] > X[0] - 2) y[t] = 2;",
        "> X",
        "< X",
    ),
]
