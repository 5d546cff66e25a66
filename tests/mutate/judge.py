"""Tests in a process of their own for each change, which begins where all modules are loaded: the verdict of a change.

The tests run once as they are, which loads what they need and says how long each takes, and which lines it reaches
where that is asked. Then each change has a fork of this process, in which tests run that reach its lines; those that
saw the most changes in the least time go first, then, of these, the quick ones, and the first that fails ends it.
"""

import contextlib
import functools
import io
import math
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import pytest
from _pytest.config import _prepareconfig

_CACHED = type(functools.lru_cache(int))
#: Words of pytest for all runs.
WORDS = ("-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist")
#: A run, and a test, may take so many times what one without a change takes, but so many seconds at least.
TIMES, LEAST = 3, 60
#: The status of a process that has not come to its tests, and of one that ends amid one.
NOT_BEGUN, WITHIN = 9, 8
#: Bytes of addresses that a run may have.
MEMORY = 6 << 30
#: Tests that go first, whatever their file; the others keep their order.
FIRST = 12


def forget() -> None:
    """Clear what functions of tests have kept, so that the next test calls them anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tests."):
            for each in vars(module).values():
                if isinstance(each, _CACHED):
                    each.cache_clear()


class _Watch:
    """What a run of tests says: the one that failed first, the seconds of each, and lines of ``files`` it reaches.

    ``order`` is that of the tests, which is infinite of those that do not run; so many go ``first``. One that takes
    ever longer than it ``usually`` does ends the process.
    """

    def __init__(self, order: Callable[[str], float] | None = None, files: Iterable[str] = (), first: int = FIRST,
                 usually: Mapping[str, float] | None = None):
        self.order, self.failed, self.seconds, self.first = order, "", Counter(), first
        self.usually = usually
        self.files, self.lines, self.here = set(files), defaultdict(set), set()

    def chosen(self, items):
        """Tests that run, in their order."""
        items = [item for item in items if self.order(item.nodeid) < math.inf]
        first = sorted(items, key=lambda item: self.order(item.nodeid))[:self.first]
        first = [item for item in first if self.order(item.nodeid) < 0]
        return first + [item for item in items if item not in first]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        def within(frame, event, _):
            if event == "line":
                self.here.add((frame.f_code.co_filename, frame.f_lineno))
            return within
        if self.usually is not None:
            signal.alarm(LEAST + int(TIMES * self.usually[item.nodeid]))
        if self.files:
            forget()
            sys.settrace(lambda frame, *_: within if frame.f_code.co_filename in self.files else None)
        yield
        if self.files:
            sys.settrace(None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item):
        self.here = self.lines[item.nodeid.partition("::")[0]]    # of all tests of the file, which may share it
        yield
        self.here = self.lines[item.nodeid]

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid


def _collected(tests):
    """A session of pytest that has found its tests, as :func:`pytest.main` has when it begins to run them."""
    config = _prepareconfig([*WORDS, *tests])
    session = pytest.Session.from_config(config)
    config._do_configure()
    config.hook.pytest_sessionstart(session=session)
    config.hook.pytest_collection(session=session)
    return session


class Judge:
    """Tests that judge changes, one after the other.

    Parameters
    ----------
    tests : list of str
        Files, or single tests, of the checkout.
    files : list of str
        Files of Python of whose lines it is kept which tests reach them.

    Raises
    ------
    RuntimeError
        If they fail without a change.
    """

    def __init__(self, tests, files=()):
        self.tests, self.seen = list(tests), Counter()
        watch, said, start = _Watch(files=files), io.StringIO(), time.monotonic()
        with contextlib.redirect_stdout(said):
            status = pytest.main([*WORDS, *self.tests], [watch])
        if status:
            raise RuntimeError(f"{watch.failed or said.getvalue()} fails without a change")
        with contextlib.redirect_stdout(said):
            self.session = _collected(self.tests)
        self.seconds, self.lines = watch.seconds, watch.lines
        self.limit, self.runs = max(LEAST, TIMES * (time.monotonic() - start)), set(watch.seconds)

    def _order(self, test):
        return -(self.seen[test] + 0.05 * bool(self.lines)) / (
            self.seconds[test] + 0.05) if test in self.runs else math.inf

    def judge(self, begin, file="", lines=range(0)) -> str:
        """The first test that fails after ``begin()``, what ended the tests otherwise, or nothing if all pass.

        Those run that reach one of these lines of a file, if there is one.
        """
        if file:
            reached = {name for name, found in self.lines.items() if any((file, line) in found for line in lines)}
            self.runs = {test for test in self.seconds if not reached.isdisjoint((test, test.partition("::")[0]))}
            if not self.runs:
                return ""
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            self._run(begin, theirs)
        os.close(theirs)
        status, until = None, time.monotonic() + self.limit
        while status is None and time.monotonic() < until:
            done, code = os.waitpid(child, os.WNOHANG)
            status = code if done else None
            time.sleep(0.01)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with os.fdopen(ours) as pipe:
            failed = pipe.read()
        if status is None:
            return "no end"
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}"
        if os.WEXITSTATUS(status) == WITHIN:    # as where there is no memory left
            return failed or "internal error"
        if os.WEXITSTATUS(status):
            raise RuntimeError(f"a change is not judged: status {os.WEXITSTATUS(status)}")
        self.seen[failed] += bool(failed)
        return failed

    def _run(self, begin, pipe):
        """In the fork: run the tests, say which failed, and end."""
        status = NOT_BEGUN
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))    # of what would take ever more, too
        try:
            begin()
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            watch = _Watch(self._order, first=len(self.seconds) if self.lines else FIRST, usually=self.seconds)
            status, config = WITHIN, self.session.config
            config.pluginmanager.register(watch)
            items = watch.chosen(self.session.items)
            for item, following in zip(items, [*items[1:], None], strict=True):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if watch.failed:
                    break
            os.write(pipe, watch.failed.encode())
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
