"""Documentation as a site: pages in Markdown, an API page for each module from its docstrings. ``make docs`` builds it.

With ``-t docstrings`` the API pages are the docstrings alone, as they stand in the files: all that can be wrong in one
is found without importing anything, in a fraction of the time.
"""

import ast
import importlib.util
import inspect
import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.ext.napoleon import NumpyDocstring

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))    # the packages of this checkout, whatever is installed
#: Pages of modules, made here as the build begins.
MODULES = Path(__file__).parent / "api" / "modules"

project = "HBFP"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
copyright = f"2026 the HBFP project. Version {version}. Licence: Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_static_path, html_css_files = ["site.css"], ["site.css"]
html_title = f"Hybrid block floating point {version}"
exclude_patterns = ["api/modules"] if tags.has("docstrings") else []    # noqa: F821, a name that Sphinx gives
myst_heading_anchors = 3
# Types in docstrings are words ("path", "name"), of which several classes have one.
suppress_warnings = ["ref.python"]
smartquotes = not tags.has("docstrings")    # noqa: F821

# What a module defines, not what it passes on.
autodoc_default_options = {"members": True, "member-order": "bysource", "ignore-module-all": True}
autodoc_typehints = "none"
autodoc_inherit_docstrings = False    # torch's, of what we override, link to its own pages
autodoc_use_type_comments = False
# Training needs PyTorch, and a GPU Triton; their pages do not.
autodoc_mock_imports = [name for name in ("torch", "triton", "transformers") if not importlib.util.find_spec(name)]
if importlib.util.find_spec("torch"):
    import torch.utils.flop_counter  # noqa: F401    # asks for types of triton, which what stands in for it has not
napoleon_google_docstring = False
napoleon_use_ivar = True
# Types of parameters are words, which is a sixth of the time to look up and makes "path" a link to somebody's field.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Members", "params_style")]


def files(package):
    """The files of a package."""
    return sorted((ROOT / package).rglob("*.py"))


def modules(package):
    """Names and files of a package's modules, but commands, and benches, which cocotb alone can import."""
    for path in files(package):
        if path.name != "__main__.py" and not re.search(r"^(import|from) cocotb\b", path.read_text(), re.MULTILINE):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in ("hbfp", *parts[package == "hbfp":]) if part != "__init__"), path


def purpose(path):
    """First line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0].replace("|", r"\|")


def append_modules(app, docname, source):
    """A page ``api/PACKAGE`` ends with a line for each module of the package, which leads to its own page."""
    folder, _, package = docname.rpartition("/")
    if folder == "api":
        rows = "".join(f"   * - :doc:`{name} <modules/{name}>`\n     - {purpose(path)}\n"
                       for name, path in modules(package))
        source[0] += f"\n.. list-table::\n   :widths: 40 60\n\n{rows}" if rows else ""


def write_modules(app):
    """A page for each module, outside the contents, which would otherwise be drawn beside every page."""
    MODULES.mkdir(parents=True, exist_ok=True)
    pages = {f"{name}.rst": f":orphan:\n\n{name}\n{'=' * len(name)}\n\nPart of :doc:`/api/{package.stem}`.\n\n"
                            f".. automodule:: {name}\n"
             for package in MODULES.parent.glob("*.rst") for name, _ in modules(package.stem)}
    for old in {path.name for path in MODULES.iterdir()} - pages.keys():
        (MODULES / old).unlink()
    for name, text in pages.items():
        if not (MODULES / name).exists() or (MODULES / name).read_text() != text:    # a page as it was is not read anew
            (MODULES / name).write_text(text)


def append_docstrings(app, docname, source):
    """A page ``api/PACKAGE`` ends with all docstrings of the package."""
    folder, _, package = docname.partition("/")
    for path in files(package) if folder == "api" else ():
        source[0] += f"\n.. rubric:: {path.name}\n"    # no section: every page would have it in its navigation
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (ast.get_docstring(node) or "").splitlines()
                keep_bars(app, None, None, None, None, lines)
                source[0] += f"\n{NumpyDocstring(lines, app.config, app)}\n"


def without_search(app):
    """Nobody searches in docstrings without names: to read every word of them takes a tenth of the time."""
    app.builder.search = False


def keep_bars(app, what, name, obj, options, lines):
    """A bar in a docstring is part of ``|x|``, a magnitude, not of a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def keep_numbers(app, doctree):
    """No line ends inside a number such as 29 265, before its %, or inside of a size such as 8 x 4."""
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block):
            kept = re.sub(r"(?<=\d) (?=\d{3}\b|%|x \d)|(?<=\d x) (?=\d)", "\N{NO-BREAK SPACE}", text)
            text.parent.replace(text, nodes.Text(kept))


def own_signature(app, what, name, obj, options, signature, returns):
    """Of a component, that of its constructor, which Amaranth hides behind one of its own."""
    if what == "class" and signature and "__init__" in vars(obj):
        _, *own = inspect.signature(obj.__init__).parameters.values()
        return str(inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in own])), returns
    return None


def setup(app):
    """Connect what this file adds."""
    app.connect("autodoc-process-signature", own_signature)
    app.connect("doctree-read", keep_numbers)
    if app.tags.has("docstrings"):
        app.connect("builder-inited", without_search)
        app.connect("source-read", append_docstrings)
    else:
        app.connect("builder-inited", write_modules)
        app.connect("source-read", append_modules)
    app.connect("autodoc-process-docstring", keep_bars)
