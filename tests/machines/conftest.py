"""The instructions of these tests are compiled before the first one."""

import pytest
from instructions import compile_together


@pytest.fixture(scope="session", autouse=True)
def instructions_of_the_tests():
    compile_together()
