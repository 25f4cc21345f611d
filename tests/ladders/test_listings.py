"""The articles' steps are what their listings say: schedule and twin, in what nvcc makes of them and what the
CPU machine counts."""

from dataclasses import replace
from functools import lru_cache

import pytest
from listing_facts import COUNTED, facts_of

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.articles import ARTICLES, FACTS
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.listings import COUNTS, EXTENTS, GRID_EXTENTS, HASHES, LISTINGS, MAPS, SOURCES
from tir_schedules.ladders.registry import FAMILIES, find, ladder
from tir_schedules.report.articles import expected, listing_rows
from tir_schedules.run import launches
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
MAKERS = {"schedule": lower, "twin": load_twin}
STEPS = [(article, step) for article in ARTICLES.values() for step in article.steps]
DECLARED = [
    (listing, each)
    for steps in LISTINGS.values()
    for listing in steps.values()
    for each in listing.differences
]
each_step = pytest.mark.parametrize("article, step", STEPS, ids=lambda value: value.name)


@lru_cache(maxsize=None)
def found(name, layout, form):
    """All facts of a rung's schedule or twin; the kernel is compiled and counted once."""
    (rung,) = find(name)
    kind = (layout,) if layout else ()
    make, workload = MAKERS[form], workload_class(rung.family)
    binary = compile_kernel(launches(make, rung, workload(*EXTENTS[rung.family], *kind), ARCH)[0])
    if rung.family == "reduce":
        return facts_of(binary, rung.family)
    grid = make(rung, workload(*GRID_EXTENTS, *kind), ARCH).grid
    return facts_of(binary, rung.family, vars(rung.config).get("bk", 32)) | {"grid": grid}


@pytest.mark.parametrize("form", MAKERS)
@each_step
def test_a_step_has_the_numbers_of_its_listing(article, step, form):
    listing = LISTINGS[article.name][step.name]
    counted = found(step.rung, step.layout, form)
    held = {*listing.facts} | ({*COUNTED, *HASHES} & {*counted} if listing.source != "words" else set())
    assert {fact: counted.get(fact) for fact in held} == expected(listing, form)


def test_threads_that_are_swapped_are_seen_wherever_they_are():
    """Of the hash alone: threads 2 and 3 are not among those whose elements the table spells."""
    (rung,) = find("reduce/first_add")
    kernel = launches(load_twin, rung, Reduction(*EXTENTS["reduce"]), ARCH)[0]
    own, swapped = "const int t = threadIdx.x;", "const int t = threadIdx.x ^ (threadIdx.x / 2 == 1);"
    assert kernel.source.count(own) == 1
    changed = replace(kernel, source=kernel.source.replace(own, swapped))
    right, seen = found(rung.id, "", "twin"), facts_of(compile_kernel(changed), rung.family)
    assert {fact for fact in right if right[fact] != seen[fact]} == {"all_maps"}


def test_every_step_has_a_listing_and_every_fact_is_explained():
    names = {name: [step.name for step in article.steps] for name, article in ARTICLES.items()}
    assert {name: [*steps] for name, steps in LISTINGS.items()} == names
    listings = [listing for steps in LISTINGS.values() for listing in steps.values()]
    assert {fact for listing in listings for fact in listing.facts} == {*FACTS, *COUNTS, *MAPS, *HASHES}
    assert {listing.source for listing in listings} == {*SOURCES}


@pytest.mark.parametrize("listing, difference", DECLARED)
def test_a_declared_difference_is_one_and_has_its_reason(listing, difference):
    """One that is gone fails here where the table says so, and above where the kernel does."""
    assert difference.value != listing.facts[difference.fact]
    assert {*difference.forms} <= {*MAKERS} and difference.reason.endswith(".")


def test_rows_have_what_differs_with_its_reason():
    rows = [row for article in ARTICLES.values() for row in listing_rows(article)]
    differing = [row for row in rows if not row.listing == row.schedule == row.twin]
    assert [row for row in rows if row.reason] == differing and len(differing) == len(DECLARED)
    (row,) = [row for row in rows if (row.step, row.fact) == ("1D block tiling", "shared_load")]
    assert (row.listing, row.twin) == ("589,824 in 196,608", "589,824 in 163,840")
    (row,) = [row for row in rows if (row.step, row.fact) == ("warp tiling", "C")]
    assert row.twin.startswith("0: 0-3, 16-19 x 0-3; 1: ") and "; last: 44-47, 60-63 x 60-63" in row.twin


def test_a_listing_is_called_article():
    """With the article's number where two articles have listings of a rung, and without a name where it is
    what the rung is by default."""
    listings = [
        (article.name, *step.rung.split(":")) for article in ARTICLES.values() for step in article.steps
    ]
    for number, base, *named in listings:
        alone = {article for article, other, *_ in listings if other == base} == {number}
        assert named in ([], ["article" if alone else f"article_{number}"])
    configs = {rung.id for each in FAMILIES for rung in ladder(each) for rung in rung.variants(flawed=True)}
    steps = {step.rung for article in ARTICLES.values() for step in article.steps}
    assert {name for name in configs if ":article" in name} <= steps <= configs
