"""The ladders: one folder each, one rung per file, and the registry of them all."""
