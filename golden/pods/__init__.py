"""Programs for machines of many pods: products to rounds, rounds to words of memories, and what they compute."""
