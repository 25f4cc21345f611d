"""Each kernel of the corpus: nothing is found in the sound one and its outputs are right; in each broken one
what its head says is found, at the lines it says, and nothing else."""

import re
from dataclasses import replace

import pytest
from corpus_kernels import (
    AFTER,
    FOLDER,
    NOTES,
    CorpusFile,
    Expected,
    Variant,
    binaries,
    cases,
    corpus,
    outcome,
)
from unit_kernels import OF_UNITS

from tir_schedules.compiler.nvcc import compile_kernels
from tir_schedules.model.findings import KINDS, Finding, Location

WAITING = (FOLDER / "waiting.txt").read_text().split()  # [] switches all on
"""Cases that the CPU machine does not get right yet. One that it gets right fails, so that it leaves the
list: `python tests/machines/corpus_kernels.py --waiting` writes it anew."""

COMING = {"deadlock", "order_dependent", "note"}
"""Kinds that the corpus may name before the machine has them."""

NAMES = {case.name: case for case in cases()}


def parameter(name):
    marks = [pytest.mark.xfail(strict=True)] if name in WAITING else []
    return pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", [parameter(name) for name in NAMES])
def test_a_case_has_the_findings_of_its_head(name):
    assert outcome(NAMES[name]) == ([], [])


def test_cases_that_wait_are_cases():
    assert set(WAITING) <= NAMES.keys() and len(WAITING) == len(set(WAITING))


@pytest.mark.parametrize("file", corpus(), ids=lambda file: file.name)
def test_heads_are_whole(file):
    head = file.text[: file.text.index("\n\n")].split("\n")[1:]
    assert len(file.settings) == len([line for line in head if line.startswith("//")])
    assert file.right and file.arguments
    assert all(len(line) <= 110 for line in file.text.split("\n"))
    broken = {int(number) for number in re.findall(r"\bBROKEN_(\d+)", file.text)}
    assert broken == {variant.number for variant in file.variants} - {0} == set(range(1, len(file.variants)))
    wanted = [one for variant in file.variants for alternatives in variant.finds for one in alternatives]
    assert {mark for one in wanted for mark in one.marks} == file.marks.keys()
    kinds = {one.kind for one in wanted}.union(*(variant.may for variant in file.variants))
    assert kinds <= KINDS.keys() | COMING and all(variant.finds for variant in file.variants[1:])


def body_of(binary, name):
    """PTX of a kernel without what tells it from the same kernel of another name."""
    ptx, entry = binary.ptx, binary.kernel.entry
    start = ptx.index(f".entry {entry}(")
    text = ptx[start : ptx.index("\n}\n", start)].replace(entry, name)
    text = re.sub(rf"\b\d*in_{name}|\b_Z\w+|\$L__BB\d+|\$L__tmp\d+", "", text)
    return [line for line in text.split("\n") if not re.match(r"\s*(\.loc|//|$)", line)]


def test_every_variant_is_another_program():
    for file in corpus():
        bodies = [body_of(binaries()[case.name], file.name) for case in file.cases]
        for number, body in enumerate(bodies[1:], 1):
            assert body != bodies[0], f"{file.name}:{number}"


def test_all_kinds_of_finding_are_in_the_corpus():
    asked = {one.kind for case in cases() for found in case.variant.finds for one in found}
    of_one_thread = {"assertion", "trap", "bad_free", "stack_overflow"}
    assert KINDS.keys() <= asked | of_one_thread | {"order_dependent"} | OF_UNITS
    assert len(corpus()) >= 60


@pytest.mark.slow
def test_the_corpus_compiles_for_a_later_architecture():
    assert binaries("sm_90").keys() == NAMES.keys()
    alone = [replace(binaries()[name].kernel, source=NAMES[name].alone) for name in ("split_k", "tiles")]
    assert all(binary.cubin for binary in compile_kernels(alone))


HEAD = """// What it is.
// launch: grid=1 block=32
// out Y: int32[4]
// right: Y == 1
// broken 1: race(put, get) | lockstep(put, get) and uninitialized(get); may deadlock -- why

a;  // @put
b;  // @get
c;  // @get
d;
"""
PUT, GET, OTHER = 7, 9, 10


def finding(kind, line, other=0, file="made_up.cu"):
    against = Location(2, file, other) if other else None
    return Finding(kind, "", "", Location(1, file, line), (0, 0, 0), 0, 0, other=against)


@pytest.mark.parametrize(
    "findings, surprises",
    [
        ([finding("race", PUT, GET), finding("uninitialized", GET)], 0),
        ([finding("lockstep", GET, PUT), finding("uninitialized", 8), finding("deadlock", OTHER)], 0),
        ([finding("race", PUT, GET), finding("uninitialized", OTHER)], 1),
        ([finding("race", PUT, OTHER), finding("uninitialized", GET)], 1),
        ([finding("race", PUT), finding("uninitialized", GET)], 1),
        ([finding("race", PUT, GET, "other.cu"), finding("uninitialized", GET, file="other.cu")], 2),
        ([finding("race", PUT, GET), finding("uninitialized", GET), finding("misaligned", PUT)], 1),
        ([finding("race", PUT, GET), finding("uninitialized", GET), finding("note", PUT, PUT)], 0),
        ([], 2),
    ],
)
def test_findings_other_than_the_head_says_are_surprises(findings, surprises):
    broken = CorpusFile("made_up", HEAD).cases[1]
    assert broken.variant == Variant(
        1,
        "why",
        (
            (Expected("race", ("put", "get")), Expected("lockstep", ("put", "get"))),
            (Expected("uninitialized", ("get",)),),
        ),
        frozenset({"deadlock"}),
    )
    assert len(broken.surprises(findings)) == surprises
    assert NOTES.isdisjoint(AFTER)


def test_anything_found_in_a_sound_kernel_is_a_surprise():
    sound = CorpusFile("made_up", HEAD).cases[0]
    assert sound.surprises([finding("order_dependent", PUT)]) and not sound.surprises(
        [finding("note", PUT, PUT)]
    )


def test_wrong_outputs_are_named():
    sound = CorpusFile("made_up", HEAD).cases[0]
    arguments = sound.arguments()
    assert sound.wrong(arguments) == ["Y == 1"]
    arguments["Y"][:] = 1
    assert sound.wrong(arguments) == []
