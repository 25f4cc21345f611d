"""Search for the constants of a schedule: spaces of configurations, a search that learns, and records that
can be believed."""
