"""The result of a bench passes only with bits, corners and protocol in order."""

from cosim.bench.comparison import Comparison
from cosim.bench.outcome import Outcome
from cosim.simulate.simulation import ProtocolError


def test_nothing_compared_is_a_failure():
    assert not Outcome("empty", Comparison()).passed
    assert Outcome("some", Comparison(compared=1)).passed
    assert not Outcome("wrong", Comparison(compared=9, mismatches=1)).passed


def test_coverage_is_apart_from_bits():
    """A corner that was not seen fails a bench under its own name, and so does a stream that broke a rule."""
    outcome = Outcome("some", Comparison(compared=9), corners={"one row": 2, "NaN result": 0},
                      unreachable={"bias": "reasons"})
    assert not outcome.passed and outcome.problems == ["corner not seen: NaN result"]
    data = outcome.as_dict()
    assert data["mismatches"] == 0 and data["failures"] == [] and not data["passed"]
    assert data["coverage"] == {"seen": {"one row": 2}, "missing": ["NaN result"], "unreachable": {"bias": "reasons"}}
    outcome = Outcome("some", Comparison(compared=9), corners={"one row": 2})
    assert outcome.passed
    with outcome.protocol():
        raise ProtocolError("o stands still")
    assert not outcome.passed and outcome.problems == ["o stands still"] and outcome.as_dict()["mismatches"] == 0
    assert Outcome("empty", Comparison()).problems == ["nothing was compared"]
