"""What changed between two texts: nothing is lost, and unchanged lines far from a change are folded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tir_schedules.insight.trace.diffs import diff, hunks, unified

TEXTS = st.lists(st.sampled_from(["a = b[i];", "a = b[j];", "}", "  for (i)", ""]), max_size=12).map(
    "\n".join
)


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_a_diff(before, after):
    lines = [line for hunk in hunks(diff(before, after)) for line in hunk.lines]
    assert [line.text for line in lines if line.kind != "add"] == before.splitlines()
    assert [line.text for line in lines if line.kind != "del"] == after.splitlines()


def test_what_changed_within_a_line_is_marked():
    old, new = diff("x = shared[i + 4];", "x = shared[j + 4];")
    assert [text for text, changed in old.parts if changed] == ["i"] and [
        text for text, changed in new.parts if changed
    ] == ["j"]


def test_lines_that_have_little_in_common_are_changed_from_end_to_end():
    assert [line.parts for line in diff("float x;", "__syncthreads();")] == [
        (("float x;", False),),
        (("__syncthreads();", False),),
    ]


def test_unchanged_lines_are_folded_but_for_those_around_a_change():
    before = [f"line {number}" for number in range(30)]
    after = [*before[:12], "new", *before[12:]]
    found = list(hunks(diff("\n".join(before), "\n".join(after))))
    assert [(hunk.folded, len(hunk.lines)) for hunk in found] == [(True, 9), (False, 7), (True, 15)]
    assert [kind for hunk in found for kind, _ in hunk.groups] == ["same", "same", "add", "same", "same"]


def test_a_unified_diff_has_no_heading_and_is_empty_where_nothing_changed():
    assert unified("a\nb", "a\nc") == "@@ -1,2 +1,2 @@\n a\n-b\n+c" and unified("a", "a") == ""
