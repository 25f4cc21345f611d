"""Software pipelining as schedules say it, for TVM's InjectSoftwarePipeline."""

from __future__ import annotations

from typing import Any


def pipeline(
    sch: Any, loop: Any, stage: list[int], order: list[int], asynchronous: list[int] | None = None
) -> None:
    """Software pipelining of the statements of a loop: the stage and the place of each, and which stages copy
    asynchronously."""
    sch.annotate(loop, "software_pipeline_stage", stage)
    sch.annotate(loop, "software_pipeline_order", order)
    if asynchronous:
        sch.annotate(loop, "software_pipeline_async_stages", asynchronous)
