"""What is told of an outcome."""

from cosim.bench.comparison import Comparison
from cosim.bench.outcome import Outcome
from cosim.command.report import not_asked_for


def test_unreachable_corners_are_told_by_reason():
    outcome = Outcome("some", Comparison(compared=1), unreachable={"a": "it is so", "b": "not", "c": "not", "d": "not"})
    assert list(not_asked_for(outcome)) == ["not asked for: a, because it is so",
                                             "not asked for: 3 corners, because not"]
