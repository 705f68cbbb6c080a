"""Packages of any Debian suite, fetched by an apt with a state of its own: this machine's packages
stay as they are.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kernels.failure import CannotTestError
from tests.kernels.programs import run


def mirrors() -> dict[str, str]:
    """Where this machine's apt gets Debian from: the archive's label (Debian, Debian-Security) to
    its address.
    """
    targets = run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
            "Created-By: Packages",
        ]
    )
    found = {
        label: address
        for origin, label, address in (line.split("|") for line in targets.split())
        if origin == "Debian"
    }
    if "Debian" not in found:
        raise CannotTestError(
            "no Debian archive is known to apt here", "run `apt-get update`, on a Debian machine"
        )
    return found


class Suite:
    """One suite with its security updates, for one architecture; the lists are fetched at the first
    question.
    """

    def __init__(self, name: str, state: Path, architecture: str) -> None:
        self._name = name
        self._architecture = architecture
        self._state = state / f"apt-{name}-{architecture}"

    def image_package(self, meta: str) -> str:
        """The package of the kernel itself that a meta-package stands for."""
        for line in self._apt("apt-cache", "show", "--no-all-versions", meta).splitlines():
            if line.startswith("Depends:") and (found := re.search(r"linux-image-\d\S*", line)):
                return found[0]
        raise CannotTestError(f"{meta} of {self._name} names no kernel")

    def download(self, packages: Sequence[str], directory: Path) -> list[Path]:
        """The files of these packages; those that are there already are not fetched again."""
        directory.mkdir(parents=True, exist_ok=True)
        missing = [package for package in packages if not list(directory.glob(f"{package}_*.deb"))]
        if missing:
            self._apt("apt-get", "download", "-qq", *missing, cwd=directory)
        return [file for package in packages for file in directory.glob(f"{package}_*.deb")]

    def companions(self, package: str) -> list[str]:
        """Newer suites keep the modules of a kernel, or its image, in packages of their own."""
        release = package.removeprefix("linux-image-")
        words = self._apt("apt-cache", "depends", "--important", package).split()
        return sorted(
            {
                word
                for word in words
                if word.startswith("linux-") and word.endswith(release) and word != package
            }
        )

    def _apt(self, *words: str, cwd: Path | None = None) -> str:
        self._fetch_lists()
        return run([words[0], *self._options(), *words[1:]], cwd)

    def _fetch_lists(self) -> None:
        if (self._state / "fetched").exists():
            return
        for directory in ("lists/partial", "cache/archives/partial"):
            (self._state / directory).mkdir(parents=True, exist_ok=True)
        known = mirrors()
        lines = [f"deb {known['Debian']} {self._name} main"]
        if "Debian-Security" in known and self._name != "sid":
            lines.append(f"deb {known['Debian-Security']} {self._name}-security main")
        (self._state / "sources.list").write_text("\n".join(lines) + "\n")
        run(["apt-get", *self._options(), "update", "-qq"])
        (self._state / "fetched").touch()

    def _options(self) -> list[str]:
        state = self._state.resolve()
        chosen = {
            "APT::Architecture": self._architecture,
            "APT::Architectures": self._architecture,
            "Dir::Etc::SourceList": state / "sources.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": state / "lists",
            "Dir::State::Status": "/dev/null",
            "Dir::Cache": state / "cache",
            "Acquire::Languages": "none",
            "APT::Sandbox::User": "root",
        }
        return [word for name, value in chosen.items() for word in ("-o", f"{name}={value}")]


def unpack(package: Path, directory: Path) -> None:
    """`dpkg-deb --extract` would put directories in the place of /bin, /lib and /sbin, which are
    symlinks in a root.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE
    ) as content:
        unpacked = subprocess.run(
            ["tar", "--extract", "--keep-directory-symlink", "-C", str(directory)],
            stdin=content.stdout,
            check=False,
        )
    if content.returncode or unpacked.returncode:
        raise CannotTestError(f"{package.name} cannot be unpacked")
