"""Passes this project adds to TVM's lowering, for what schedule primitives and TVM's own passes do not reach."""
