"""What files from elsewhere must hold: packs, results, sweeps, recorded counters, tuning records. See
files.py for how one is checked.

Only what is read is described; a file may say more, unless a schema is `Exact`. Text has no line breaks or
other control characters, unless it is `Prose`.
"""

from tir_schedules.subjects.schemas.kinds import Open, Task
from tir_schedules.subjects.schemas.packs import Manifest
from tir_schedules.subjects.schemas.results import (
    Counters,
    Record,
    Results,
    ResultsAndPoints,
    Searches,
    Sweeps,
    Tuners,
)

__all__ = [
    "Counters",
    "Manifest",
    "Open",
    "Record",
    "Results",
    "ResultsAndPoints",
    "Searches",
    "Sweeps",
    "Task",
    "Tuners",
]
