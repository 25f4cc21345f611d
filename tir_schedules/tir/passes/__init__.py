"""Passes that this project adds to TVM's lowering, for what neither schedule primitives nor TVM's own passes
do. An annotation of `model/annotations.py` asks for each."""


class Unfit(Exception):
    """A primitive asks for what a pass cannot do with the schedule. primitive: its name. The text says what
    it takes."""

    def __init__(self, primitive: str, text: str):
        super().__init__(text)
        self.primitive = primitive
