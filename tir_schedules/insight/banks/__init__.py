"""What `layout` shows: the banks of shared memory."""
