"""Mutants of every schedule and twin on Hopper, all of them: how many are found, and how many of these leave
right numbers in all orders.

`python tests/ladders/hgemm/hopper_mutant_table.py [RUNG ...]`, 5 minutes on 2 cores.
"""

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from hopper_mutant_cases import CASES, Case, case_of, numbered  # noqa: E402
from hopper_mutants import Mutant  # noqa: E402
from test_hopper_ptx_mutants import is_right  # noqa: E402


def judged(case: Case, mutant: Mutant) -> tuple[bool, bool]:
    """Whether it is found, and whether its numbers are right."""
    return case.finding(mutant) is not None, case.right(mutant)


def main(rungs: list[str]) -> None:
    total: Counter[str] = Counter()
    print("| kernel | mutants | right by the memory model | found | with right numbers | missed |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, form in CASES:
            if rungs and name not in rungs:
                continue
            case, row = case_of(name, form), Counter()
            every = list(numbered(case.mutants()))
            results = pool.map(judged, [case] * len(every), [mutant for mutant, _ in every])
            for (mutant, (what, number, _)), (found, right) in zip(every, results):
                same = is_right(name, form, what, number)
                row.update(mutants=1, same=same, found=found, right=found and right)
                if not found and not same:
                    print(f"missed: {name} {form}: {mutant.name}", file=sys.stderr)
                    row["missed"] += 1
            line(f"{name} {form}", row)
            total += row
    line("all", total)


def line(name: str, row: Counter[str]) -> None:
    cells = (row[key] for key in ("mutants", "same", "found", "right", "missed"))
    print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
