"""The core: commands, the way out, and how its parts are wired."""
