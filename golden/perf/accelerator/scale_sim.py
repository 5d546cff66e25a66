"""Cycles of products by the formula of another simulator, for comparison."""

from collections.abc import Iterable

from hbfp.program import Product


def scale_sim(products: Iterable[Product], rows: int, columns: int) -> int:
    """Cycles that SCALE-Sim 3.0.0 counts for products on a weight-stationary array of ``rows`` by ``columns``.

    Each tile of the weights is loaded, all rows stream through it, and their results leave, before the next begins;
    partial tiles take as long as whole ones. DRAM costs nothing.
    """
    return sum(each.count * ((2 * rows + columns + each.rows - 2) * -(-each.terms // rows)
                             * -(-each.columns // columns) - 1) for each in products)
