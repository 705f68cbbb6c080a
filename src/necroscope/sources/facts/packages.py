"""Installed packages with their versions: dpkg's status file, rpm's SQLite database, apk's list.

An rpm database of the old kind (Berkeley DB) is only hashed: that it differs from another node's is
what counts.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.sources.facts import rpm_database
from necroscope.sources.facts.fact import Fact, fact, read_bytes, read_pieces

_DATABASE_BYTES: Final = 256 << 20


def collect(root: Path) -> Iterator[Fact]:
    """A fact for each package, and one for all of them."""
    packages = dict(sorted(_read_packages(root).items())[: rpm_database.PACKAGE_LIMIT])
    old_database = root / "var/lib/rpm/Packages"
    if packages:
        for name, version in packages.items():
            yield fact("package", name, version)
        text = "".join(f"{name} {version}\n" for name, version in packages.items())
        yield fact("packages", "count", len(packages))
        yield fact("packages", "sha256", hashlib.sha256(text.encode()).hexdigest())
    elif (digest := _sha256(old_database)) is not None:
        yield fact("packages", "sha256", digest)


def _sha256(path: Path) -> str | None:
    """Of a file that may have hundreds of megabytes."""
    digest = hashlib.sha256()
    try:
        for piece in read_pieces(path, _DATABASE_BYTES):
            digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _read_packages(root: Path) -> dict[str, str]:
    status = read_bytes(root / "var/lib/dpkg/status", _DATABASE_BYTES)
    if status:
        return parse_dpkg(status)
    if rpm_database.is_there(root):
        return _read_rpm(root)
    return parse_apk(read_bytes(root / "lib/apk/db/installed", _DATABASE_BYTES) or b"")


def parse_dpkg(data: bytes) -> dict[str, str]:
    """The paragraphs of packages that are installed."""
    found = {}
    for paragraph in data.decode("utf-8", "backslashreplace").split("\n\n"):
        fields = dict(
            re.findall(r"^(Package|Status|Version|Architecture): (.+)$", paragraph, re.MULTILINE)
        )
        if fields.get("Status", "").endswith(" installed"):
            found[f"{fields.get('Package', '')}:{fields.get('Architecture', '')}"] = fields.get(
                "Version", ""
            )
    return found


def parse_apk(data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "backslashreplace")
    paragraphs = (
        dict(re.findall(r"^([PV]):(.+)$", paragraph, re.MULTILINE))
        for paragraph in text.split("\n\n")
    )
    return {fields["P"]: fields.get("V", "") for fields in paragraphs if "P" in fields}


def _read_rpm(root: Path) -> dict[str, str]:
    """Several packages of one name are several kernels: all versions are kept."""
    found: dict[str, str] = {}
    for parsed in map(rpm_database.parse_package, rpm_database.read_headers(root)):
        if parsed is not None:
            name, version = parsed
            found[name] = f"{found[name]} {version}" if name in found else version
    return found
