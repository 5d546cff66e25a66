"""Networks that ``python -m golden tune`` knows by name: each is a file as a user would write it."""
