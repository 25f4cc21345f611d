"""What `trace` shows: a schedule, primitive by primitive."""
