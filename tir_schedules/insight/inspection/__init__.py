"""What `inspect` shows: a rung's schedule beside its twin."""
