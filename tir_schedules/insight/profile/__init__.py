"""What `profile` shows: predicted counters beside those of Nsight Compute."""
