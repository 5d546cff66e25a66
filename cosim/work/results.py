"""Verdicts in a file: read as they are, added one by one, by several runs at a time."""

import json
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

from hbfp import files


def load(path: Path, fields: Set[str]) -> dict[str, dict[str, Any]]:
    """Entries by key; none if the file is not there or does not hold entries with these fields."""
    try:
        entries = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        entries = None
    if isinstance(entries, dict) and all(isinstance(entry, dict) and fields <= set(entry)
                                         for entry in entries.values()):
        return entries
    print(f"{path}: cannot be read; making it again", file=sys.stderr)
    return {}


def store(path: Path, key: str, entry: dict[str, Any], fields: Set[str]) -> None:
    """Add one entry to those that this run and others have stored."""
    with files.lock(path):
        files.write(path, json.dumps(load(path, fields) | {key: entry}, indent=1, sort_keys=True) + "\n")
