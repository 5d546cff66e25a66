"""Documentation as a site: pages in Markdown, API pages from the docstrings. ``make docs`` builds it."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))    # the packages of this checkout, whatever is installed

project = "HBFP"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Hybrid block floating point"
myst_heading_anchors = 3
# Types in docstrings are words ("path", "name"), of which several classes have one.
suppress_warnings = ["ref.python"]

# What a module defines, not what it passes on.
autodoc_default_options = {"members": True, "member-order": "bysource", "ignore-module-all": True}
autodoc_typehints = "none"
# Training needs PyTorch, its pages do not.
autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch"]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Members", "params_style")]


def modules(package):
    """The modules of a package, but commands, and benches, which cocotb alone can import."""
    for path in sorted((ROOT / package).rglob("*.py")):
        if path.name != "__main__.py" and not re.search(r"^(import|from) cocotb\b", path.read_text(), re.MULTILINE):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in ("hbfp", *parts[package == "hbfp":]) if part != "__init__")


def append_modules(app, docname, source):
    """A page ``api/PACKAGE`` ends with all modules of the package."""
    folder, _, package = docname.partition("/")
    if folder == "api":
        source[0] += "".join(f"\n{name}\n{'-' * len(name)}\n\n.. automodule:: {name}\n" for name in modules(package))


def keep_bars(app, what, name, obj, options, lines):
    """A bar in a docstring is part of ``|x|``, a magnitude, not of a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def own_signature(app, what, name, obj, options, signature, returns):
    """Of a component, that of its constructor, which Amaranth hides behind one of its own."""
    if what == "class" and signature and "__init__" in vars(obj):
        _, *own = inspect.signature(obj.__init__).parameters.values()
        return str(inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in own])), returns
    return None


def setup(app):
    """Connect what this file adds."""
    app.connect("autodoc-process-signature", own_signature)
    app.connect("source-read", append_modules)
    app.connect("autodoc-process-docstring", keep_bars)
