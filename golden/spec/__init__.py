"""The design as data: formats, configurations and their options. Standard library only."""
