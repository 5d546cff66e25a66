"""Random accelerators that can train: over all options, but with memories and functions for small networks."""

import random
from dataclasses import replace

from hbfp.system import FUNCTIONS, Accelerator

from .random_accelerators import draw

_WORDS = (256, 512, 1024)


def draw_trainer(seed: int, number: int = 0, *, trains: bool = True) -> Accelerator:
    """The accelerator of a number in the sequence of a seed, of 4 x 4 or 8 x 8; it does not depend on the others.

    Without ``trains`` it may be one that runs networks alone.
    """
    rng = random.Random(f"trainer {seed} {number}")
    while True:
        try:
            drawn = draw(rng.getrandbits(31), side=rng.choice((4, 8, 8)))
            if trains and drawn.core.number.sums:
                continue
            return replace(drawn, x_words=rng.choice(_WORDS), w_words=rng.choice(_WORDS), v_words=rng.choice(_WORDS),
                           p_words=rng.choice((128, 512)), row_words=rng.randint(6, 32), functions=FUNCTIONS,
                           vector_rows=rng.randint(6, 12), contexts=1, dispatch=0, dispatch_ring=False)
        except ValueError:
            continue    # 4 x 4 has fewer widths, and functions need lanes
