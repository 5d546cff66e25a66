"""Numbers that HBFP is compared with: what they round to, and how formats of all kinds are named."""
