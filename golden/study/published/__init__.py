"""Published experiments as commands: each task is a TOML file, its data are the user's."""
