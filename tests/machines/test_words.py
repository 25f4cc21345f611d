"""How PTX is read: what is no PTX, comments, strings."""

import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction


@pytest.mark.parametrize("text", ["~3", "3*4", "3 ? 4", "-3.5", "089", "%nothing", "{a, b"])
def test_what_is_no_ptx_is_refused_at_its_line(text):
    with pytest.raises(UnsupportedInstruction, match=r"PTX line \d+"):
        launch(module("test", (), f".reg .b32 d; mov.u32 d, {text};"), {}, ())


@pytest.mark.parametrize(
    "comment",
    [
        "// see src/*.cu\nmov.u32 d, 4;\n// and a*/b\n",
        "/* one // */ mov.u32 d, 4; // two\n",
        '.pragma "a/*b"; mov.u32 d, 4; .pragma "c*/d";',
    ],
)
def test_comments_and_strings_do_not_begin_in_each_other(comment):
    body = f".reg .b32 d; .reg .b64 y; ld.param.u64 y, [Y]; mov.u32 d, 3; {comment} st.global.u32 [y], d;"
    text = module("test", ["Y"], body)
    arguments = {"Y": np.zeros(1, np.uint32)}
    launch(text, arguments, ("Y",), block=(1, 1, 1))
    assert arguments["Y"][0] == 4
