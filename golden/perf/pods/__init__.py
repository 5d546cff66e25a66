"""Many pods behind a network: networks as lists of products, tiles, a scheduler, and what they cost."""
