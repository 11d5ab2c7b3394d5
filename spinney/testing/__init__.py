"""What a new source, exchange or algorithm has to hold, as tests to inherit from; our own hold the same.

    source      SourceContract      a place with patients and readings, and ways to disturb it
    exchange    ExchangeContract    a place where messages lie, and ways to disturb it
    algorithm   AlgorithmContract   a study that names the algorithm

A test file of somebody else's package has one class that inherits, and one fixture that says over what:

    class TestOurLab(SourceContract):
        @pytest.fixture
        def place(self, tmp_path):
            return LabPlace(tmp_path)

It needs pytest, which the extra `testing` brings.
"""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{one}" for one in ("algorithm", "exchange", "source")))
