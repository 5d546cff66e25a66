"""Fixed-point arithmetic components: dot products, alignment of block sums."""
