"""Progress of long work, in sight of the user."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bars:
    """A bar for each step, while :attr:`progress` is entered; calling it with the step's name begins one.

    What that gives is called with (done, total). Nothing is drawn where the output is no terminal.
    """
    COLUMNS = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.progress = Progress(*self.COLUMNS, console=console, transient=True,
                                 disable=quiet or not console.is_interactive)

    def __call__(self, text: str) -> Callable[[int, int | None], Any]:
        """Begin a step."""
        for task in self.progress.tasks:    # what came before is done
            self.progress.stop_task(task.id)
        task = self.progress.add_task(text, total=None)
        return lambda done, total: self.progress.update(task, completed=done, total=total)
