"""A CPU, its memory and the accelerator as one system for a board, by LiteX: ``python -m gen soc``."""
