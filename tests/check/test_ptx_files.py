"""PTX by hand goes through ptxas before it is executed; sizes that no GPU has are refused."""

import pytest

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = """.visible .entry k(.param .u64 X)
{
.reg .b64 x, a; .reg .u32 u<4>; .reg .f32 f<4>; .reg .pred p;
ld.param.u64 x, [X]; mov.u32 u1, 7;
st.global.u32 [x], u1;
ret;
}
"""
SOUND = HEAD + BODY
LAUNCH = ["--block", "1", "--arg", "u32[1]:out"]


def checked(tool, tmp_path, text, command="check"):
    path = tmp_path / "mine.ptx"
    path.write_text(text)
    return tool(command, str(path), *LAUNCH)


def with_line(line):
    return SOUND.replace("st.global", line + "\nst.global")


REFUSED = {
    "a version to come": (SOUND.replace("8.0", "99.9"), "line 1; fatal   : Unsupported .version 99.9"),
    "an older version": (SOUND.replace("8.0", "6.0"), "PTX .version 6.0 does not support .target sm_80"),
    "an unknown target": (SOUND.replace("sm_80", "sm_999"), "Unsupported gpu architecture 'sm_999'"),
    "a newer target": (with_line("elect.sync u1|p, -1;"), "line 8; error   : Feature 'elect' requires"),
    "a newer instruction": (with_line("redux.sync.min.f32 f1, f1, -1;"), "requires PTX ISA .version 8.6"),
    "other types": (with_line("add.f32 f1, u1, f2;"), "line 8; error   : Arguments mismatch for instruction"),
    "no instruction": (with_line("frob.u32 u1, 3;"), "Not a name of any known instruction: 'frob'"),
    "no register": (with_line("mov.u32 u9, 3;"), "Unknown symbol 'u9'"),
    "truncated": (SOUND[:150], "Parsing error near"),
    "without its beginning": (SOUND[15:], "mine.ptx: PTX begins with .version, and this text does not"),
    "empty": ("", "mine.ptx: PTX begins with .version, and this text does not"),
    "shared memory": (with_line(".shared .b8 s[1048576]; mov.u64 a, s;"), "uses too much shared data"),
    "local memory": (
        with_line(".local .b32 s[100000000]; mov.u64 a, s; st.local.u32 [a+40], u1; ld.local.u32 u1, [a];"),
        "k: 400000000 bytes of local memory per thread; CUDA allows 524288",
    ),
    "a little more of it": (
        with_line(".local .b8 s[524292]; mov.u64 a, s; st.local.u32 [a+4], u1; ld.local.u32 u1, [a];"),
        "bytes of local memory per thread; CUDA allows 524288",
    ),
    "variables": (
        HEAD + ".global .b8 g[8589934592];\n" + BODY,
        "k: its file declares 8589934592 bytes of variables in global memory; the CPU machine has 4294967296",
    ),
    "parameters": (SOUND.replace("u64 X", "b8 X[99999999]"), "too much parameter space"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_ptx_that_cannot_run_is_refused(case, tmp_path, tool):
    text, told = REFUSED[case]
    code, out, err = checked(tool, tmp_path, text)
    assert code == 1 and told in out and "Traceback" not in out + err, out + err


ACCEPTED = {
    "as it is": SOUND,
    "for an older GPU": SOUND.replace("sm_80", "sm_52"),
    "much local memory": with_line(
        ".local .b8 s[524280]; mov.u64 a, s; st.local.u32 [a+524276], u1; ld.local.u32 u1, [a+524276];"
    ),
    "many registers": with_line(".reg .b32 r<99999999>; mov.u32 r<0>, u1;").replace("r<0>", "r77"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_ptx_that_can_run_is_executed(case, tmp_path, tool):
    code, out, err = checked(tool, tmp_path, ACCEPTED[case])
    assert code == 0 and "no expected value given: 0 hazards" in out, out + err


def test_cuda_with_more_local_memory_than_there_is(tmp_path, tool):
    path = tmp_path / "mine.cu"
    path.write_text(
        "__global__ void k(int *y) {"
        " int a[200000]; for (int i = 0; i < 9; i++) a[y[i]] = i; y[0] = a[y[9]]; }"
    )
    code, out, _ = tool("check", str(path), "--block", "1", "--arg", "i32[9]")
    assert code == 1 and "k: 800000 bytes of local memory per thread; CUDA allows 524288" in out


@pytest.mark.parametrize("case", ["a version to come", "truncated", "local memory"])
def test_inspect_says_the_same(case, tmp_path, tool):
    text, told = REFUSED[case]
    code, out, err = checked(tool, tmp_path, text, "inspect")
    assert code == 1 and told in out and "Traceback" not in out + err, out + err


IN_STRUCTS = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .align 8 .b8 twice_param_0[8], .param .align 8 .b8 twice_param_1[8])
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [twice_param_0];
  ld.param.u64 %rd2, [twice_param_1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.u32 %r2, %r2, %r2;
  st.global.u32 [%rd5], %r2;
  ret;
}
"""


def test_a_struct_of_8_bytes_may_be_a_pointer(tool, tmp_path):
    path = tmp_path / "twice.ptx"
    path.write_text(IN_STRUCTS)
    given = ("--block", "32", "--arg", "u32[32]", "--arg", "u32[32]:out", "--expect", "param_1=2*param_0")
    code, out, err = tool("check", str(path), *given)
    assert (code, err) == (0, "") and "1 of 1 verified" in out
    code, out, _ = tool("check", str(path), "--block", "32", "--arg", "u8[8]:0", "--arg", "u32[32]:out")
    assert code == 1 and "where no buffer is" in out
