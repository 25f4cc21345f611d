"""Passes that this project adds to TVM's lowering, for what neither schedule primitives nor TVM's own passes
do. An annotation of `model/annotations.py` asks for each."""
