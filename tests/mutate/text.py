"""Changes of a module's text, one place after the other: ``python -m tests.mutate FILE``.

Places are operators, comparisons, constants, conditions, choices and assignments in functions of the module, those of
hardware and those of Python, drawn by a seed. Its tests are those of ``make test`` that have its name or say that they
cover it (``tests/test_mirror.py``). They run on a copy of the tracked files; what a change breaks before anything is
tested is told apart. What survives changes nothing that its tests look at: a hole in them, or a place that makes no
difference, which a person must say.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp import files

from ..test_mirror import COVERED, mirrored

ROOT = Path(__file__).parents[2]
BINARY: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
                            ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Mult: ast.Add,
              ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And}
COMPARED: dict[type, type] = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
                              ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
                              ast.NotIn: ast.In}
#: Functions of Python, and those that take their place.
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: Calls whose argument is a condition.
CONDITIONS = ("If", "Elif")
#: What came of a change: a test failed, nothing could be tested, or all tests passed.
VERDICTS = SEEN, BROKEN, SURVIVED = "seen", "broken", "survived"
#: Errors of a description that is none, in a test's output.
_NONE = re.compile(r"^E   +(TypeError|AttributeError|NameError|SyntaxError|IndexError|ValueError|amaranth\.\S+)\b",
                   re.MULTILINE)


@dataclass
class Mutant:
    """One change: its line, what stood there and what stands there now, the module's new text, what came of it."""
    line: int
    before: str
    after: str
    text: str
    verdict: str = ""


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """What may stand in place of a node."""
    match node:
        case ast.BinOp(op=op) if type(op) in BINARY:
            yield ast.BinOp(node.left, BINARY[type(op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(BINARY[type(node.op)](), node.values)
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                yield ast.Compare(node.left, [*ops[:place], COMPARED[type(op)](), *ops[place + 1:]], node.comparators)
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            yield node.operand
        case ast.Call(func=ast.Name(name)) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name]), node.args, node.keywords)
        case ast.Constant(value=value) if type(value) is int:
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Name("Mux"), args=[condition, one, other]):
            yield ast.Call(node.func, [condition, other, one], [])
        case ast.Call(func=ast.Attribute(attr="eq")):
            yield ast.List([], ast.Load())    # the assignment is gone
        case ast.Call(func=ast.Attribute(attr=name), args=[condition]) if name in CONDITIONS:
            yield ast.Call(node.func, [ast.Compare(condition, [ast.Eq()], [ast.Constant(0)])], [])


def _turned(node: ast.AST) -> Iterator[ast.expr]:
    """The conditions of a statement or an expression of Python that no change in them turns round as a whole."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
        case _:
            tests = []
    for test in tests:
        match test:
            case ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot()
                                                              | ast.In() | ast.NotIn()]):
                pass
            case _:
                yield test


def mutants(text: str) -> list[Mutant]:
    """Every change of a module's text, in its order."""
    found, raw = [], text.encode()
    starts = [0, *accumulate(map(len, raw.splitlines(keepends=True)))]
    nodes = {id(node): node for function in ast.walk(ast.parse(text)) if isinstance(function, ast.FunctionDef)
             for statement in function.body for node in ast.walk(statement)}    # once, if in functions of functions
    changes = [(node, other) for node in nodes.values() for other in _changed(node)]
    changes += [(test, ast.UnaryOp(ast.Not(), test)) for node in nodes.values() for test in _turned(node)]
    for node, other in changes:
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        after = ast.unparse(other) if isinstance(other, ast.Constant | ast.List) else f"({ast.unparse(other)})"
        found.append(Mutant(node.lineno, raw[begin:end].decode(), after,
                            (raw[:begin] + after.encode() + raw[end:]).decode()))
    return sorted(found, key=lambda each: each.line)


def tests_of(module: str) -> list[str]:
    """The tests that cover a module, those of its name first."""
    own = [mirrored(module)] if mirrored(module).exists() else []
    return [str(path.relative_to(ROOT)) for path in own] + [test for name, test in COVERED if name == module]


def copied(folder: Path) -> None:
    """Put a copy of all tracked files, as they stand, into a folder."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def judge(folder: Path, tests: list[str], limit: float) -> str:
    """The verdict of tests on a copy."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit, env=os.environ | {
            "HBFP_BUILD": str(files.build()), "PYTHONDONTWRITEBYTECODE": "1"})
    except subprocess.TimeoutExpired:    # as what never ends is
        return SEEN
    if done.returncode == 0:
        return SURVIVED
    return SEEN if done.returncode == 1 and not _NONE.search(done.stdout) else BROKEN


def run(module: str, chosen: list[Mutant], limit: float, console: Console) -> None:
    """Judge changes of a module.

    Raises
    ------
    SystemExit
        If it has no tests, or they fail as it is.
    """
    tests = tests_of(module)
    if not tests:
        raise SystemExit(f"python -m tests.mutate: error: no test covers {module}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        if judge(folder, tests, limit) != SURVIVED:
            raise SystemExit(f"python -m tests.mutate: error: the tests of {module} fail without a change")
        for mutant in track(chosen, module, console=console, transient=True):
            (folder / module).write_text(mutant.text)
            mutant.verdict = judge(folder, tests, limit)


def judged(modules: list[str], count: int, seed: int, limit: float, console: Console) -> dict[str, list[dict]]:
    """Judge changes of modules, drawn by a seed, and print them; what came of each."""
    table, found = Table("module", "changes", *VERDICTS), {}
    for module in modules:
        every = mutants((ROOT / module).read_text())
        picked = sorted(random.Random(seed).sample(range(len(every)), min(count, len(every))))
        chosen = [every[number] for number in picked]
        run(module, chosen, limit, console)
        counts = Counter(each.verdict for each in chosen)
        table.add_row(module, f"{len(picked)} of {len(every)}", *(str(counts[name]) for name in VERDICTS))
        for each in chosen:
            if each.verdict == SURVIVED:
                console.print(f"{module}:{each.line}: {each.before}  ->  {each.after}", markup=False, soft_wrap=True)
        found[module] = [{key: value for key, value in asdict(each).items() if key != "text"} for each in chosen]
    console.print(table)
    return found
