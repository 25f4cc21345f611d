"""How tests draw examples with hypothesis."""

from hypothesis import HealthCheck, settings


def drawn(examples):
    """Hypothesis settings: the same examples every time, as slow as they are."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
