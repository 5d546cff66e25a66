"""What pyproject.toml cannot say: on x86-64 Linux a wheel brings the compiled kernels, if there is a compiler."""

import platform
import re
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))    # the sources, which nothing has installed yet

from hbfp.golden.fast import compiled  # noqa: E402

#: Of ``compiled.LEVELS``: what a wheel from here has.
LEVELS = compiled.LEVELS if sys.platform == "linux" and platform.machine() == "x86_64" and compiled.compiler() else ()


class Sources(build_py):
    """The sources, and the kernels beside theirs; not of an editable installation, which compiles its own."""

    def run(self):
        """Copy and compile."""
        super().run()
        if not self.editable_mode:
            for level in LEVELS:
                target = Path(self.build_lib, "hbfp", "golden", "fast", compiled.name_of(level))
                compiled.build(level, compiled.compiler(), target)


class Wheel(bdist_wheel):
    """A wheel for any Python 3 on this platform, or on any where it has no machine code."""

    def get_tag(self):
        """Python, ABI and platform: systems whose C library has all symbols of the kernels, and C++ 17 from 2.28 on."""
        found = {int(minor) for path in Path(self.bdist_dir or "").rglob("kernels-*.so")
                 for minor in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())}
        return "py3", "none", f"manylinux_2_{max(28, *found)}_x86_64" if found else "any"


class Machine(Distribution):
    """Says whether the wheel has machine code."""

    def has_ext_modules(self):
        """Whether it has."""
        return bool(LEVELS)


setup(cmdclass={"build_py": Sources, "bdist_wheel": Wheel}, distclass=Machine)
