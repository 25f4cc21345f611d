"""One HTML page of what the project shows: recorded results, and what the CPU machine counts."""
