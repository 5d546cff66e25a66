"""Passes in portions: all of them, in their order, and no fewer portions would do."""

from itertools import product
from math import prod

import pytest

from golden.lower.products.passes import even, portions


@pytest.mark.parametrize("step", [1, 3, 8])
def test_pieces_are_the_smallest_of_which_so_few_will_do(step):
    for rows, most in product(range(1, 50), range(step, 34, step)):
        fewest = -(-rows // most)
        assert even(rows, most, step) == next(
            size for size in range(step, most + 1, step) if -(-rows // size) == fewest), (rows, most)


def walked(fields):
    """Address and place in the image of all passes of MULTIPLY's fields, in their order."""
    counts = [range(fields[f"passes{loop}"]) for loop in (2, 1, 0)]
    return [(fields["base"] + sum(at * fields[f"pass{loop}"] for at, loop in zip(place, (2, 1, 0), strict=True)),
             fields["x"] + place[1] * fields["x_pass"], fields["y"] + place[0] * fields["y_pass"])
            for place in product(*counts)]


@pytest.mark.parametrize("counts", [(1, 1, 1), (12, 1, 1), (2, 3, 1), (2, 3, 5), (4, 1, 3), (2, 7, 2)])
@pytest.mark.parametrize("step", [1, 2])
def test_portions_are_all_passes_and_no_fewer_would_do(counts, step):
    """Of portions that are steps of one loop, with all that is within: of ``step`` passes each, as blocks are."""
    if counts[0] % step and counts != (1, 1, 1):
        return
    fields = {f"passes{loop}": count for loop, count in enumerate(counts)} | {
        "base": 7, "pass0": 1, "pass1": 40, "pass2": 1000, "bounded": 1, "x": -1, "x_pass": 2, "y": -3, "y_pass": 5}
    for most in range(step, prod(counts) + 2 * step, step):
        found = portions(fields, most, step)
        assert sum((walked(each.fields) for each in found), []) == walked(fields)
        assert [each.first for each in found] == [sum(each.tiles for each in found[:n]) for n in range(len(found))]
        assert [each.tiles for each in found] == [len(walked(each.fields)) for each in found]
        assert max(each.tiles for each in found) <= most and not any(each.tiles % step for each in found[:-1])
        fewest = min(prod(counts[loop + 1:]) * -(-counts[loop] // (most // prod(counts[:loop])))
                     for loop in range(3) if prod(counts[:loop]) <= most)
        assert len(found) == (1 if prod(counts) <= most else fewest), most


def test_places_in_an_image_stay_where_nothing_is_beyond_it():
    """MULTIPLY has no such fields then."""
    fields = {"base": 0, "passes0": 1, "passes1": 3, "passes2": 3, "pass0": 1, "pass1": 1, "pass2": 9}
    assert all(set(each.fields) == set(fields) for each in portions(fields, 2))
