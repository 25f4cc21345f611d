"""What a kernel's costly lines could cost instead, by replaying the accesses that it made."""
