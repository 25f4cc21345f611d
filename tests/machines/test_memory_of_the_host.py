"""Where the host has too little memory, a launch ends with a MemoryError, and malloc of a kernel gives 0."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from ptx_kernels import SLOTS, module
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

def run(body, threads, before=""):
    y = np.zeros(2 * threads, np.uint32)
    text = module("test", ("X", "Y"), SLOTS + body).replace(".visible", before + ".visible")
    kernel = Kernel("test", "", "test", ("X", "Y"), (1, 1, 1), (threads, 1, 1), "sm_80")
    CpuMachine(heap=1 << 38).run(Binary(kernel, text, b"", Resources(0, 0)), {"X": y, "Y": y}, ("Y",))
    return int(y[0])

STORE = "st.global.u32 [y], t;"
LOCAL = ".local .b8 s[{0}]; mov.u64 off, s; st.local.u32 [off], t; ld.local.u32 t, [off];" + STORE
MALLOC = '''.reg .b64 a; {{ .param .b64 n; .param .b64 r; st.param.b64 [n], {0}; call (r), malloc, (n);
ld.param.b64 a, [r]; }} shr.u64 a, a, 40; add.u64 a, a, 1; st.global.u64 [y], a;'''
DECLARED = ".extern .func (.param .b64 r) malloc (.param .b64 n);\\n"
assert run(LOCAL.format(64), 32) == 0 and run(MALLOC.format(64), 1, DECLARED) > 1
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + (256 << 20),) * 2)
assert run(MALLOC.format(1 << 34), 1, DECLARED) == 1  # which is 0 and 1
try:
    run(LOCAL.format(500000), 1024)
except MemoryError as error:
    print(error)
"""


def test_too_little_memory_ends_no_process():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "blocks of test need more\n"), ran.stderr
