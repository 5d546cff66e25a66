"""Constants of the random stream, docs/numerics.md, section 6: data that the model and the hardware share."""

#: Shifts (a, b, c) of the xorshift32 generator of converter lane l: entry l mod 47. Each has the full period, 2^32 - 1.
TRIPLES = (
    (1, 5, 16), (1, 9, 29), (1, 11, 16), (1, 21, 20), (1, 27, 27), (2, 5, 15), (2, 7, 25), (2, 9, 15), (2, 15, 17),
    (2, 15, 25), (2, 21, 9), (3, 1, 14), (3, 3, 26), (3, 5, 20), (3, 5, 22), (3, 7, 29), (3, 13, 7), (3, 23, 25),
    (3, 25, 24), (4, 3, 17), (4, 5, 15), (5, 3, 21), (5, 7, 22), (5, 9, 28), (5, 13, 6), (5, 15, 17), (5, 17, 13),
    (5, 21, 12), (5, 27, 21), (6, 3, 17), (6, 17, 9), (6, 21, 13), (7, 13, 25), (7, 17, 21), (7, 25, 12), (8, 9, 23),
    (9, 11, 19), (9, 21, 16), (10, 9, 21), (11, 7, 12), (11, 17, 13), (12, 9, 23), (13, 3, 17), (13, 17, 5),
    (14, 13, 15), (15, 1, 29), (17, 15, 20))

#: 2^32 divided by the golden ratio, odd: l + 1 times this spreads the lanes' starting points.
LANE_STEP = 0x9E3779B9

#: What a reset stands for: the seed 1, mixed (:func:`golden.noise.mix`).
RESET = 0x514E28B7

# Numbers by position.

#: Numbers that one state gives, those of elements that follow each other in a row; bits of a number.
GROUP, NUMBER = 32, 8
#: Rounds from key and position to a state, and the places by which a round turns its words.
ROUNDS, TURNS = 12, (1, 8, 2)
#: Bits of the state whose sum is bit 7, 6, ... of the group's first number. Each next number takes them two places
#: further left, so that any five numbers of a group are independent: their 40 sums are of full rank.
TAPS = ((4, 11, 59), (19, 24, 25), (31, 49, 51), (3, 20, 37), (23, 46, 58), (4, 32, 60), (15, 40, 54), (5, 21, 50))
STRIDE = 2
#: How many places further left than the group's first number that one stands which the group shares, for dropout; with
#: any three of the group's it is independent.
SHARED = 1
