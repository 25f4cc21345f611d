"""`python -m tir_schedules.cli` is `python -m tir_schedules`."""

from tir_schedules.__main__ import main

raise SystemExit(main())
