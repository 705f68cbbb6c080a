"""Writes a software bill of materials in CycloneDX's JSON: what the package brings (the page's npm
packages) and what it is installed with (requirements/, by version and hash).

`python scripts/sbom.py FILE`; the build hook runs it, so that every wheel has it in
`.dist-info/sboms/` (PEP 770). The same tree gives the same bytes: no time and no random number.
"""

import base64
import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
NAME = "necroscope"
# A name with its version, then its hashes, each on a line of its own.
_LOCKED = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)[^\n]*((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+)", re.M
)
_PAGE_TOOLS = {"vite"}
_NODE = ROOT / "requirements/node.txt"


def main() -> None:
    bom = Bom()
    bom.serial_number = uuid.UUID(int=0)
    bom.metadata.timestamp = None  # type: ignore[assignment]
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name=NAME, version=_version(), bom_ref=NAME
    )
    components = {component.bom_ref.value: component for component in (*_python(), *_page())}
    bom.components.update(components.values())
    bom.register_dependency(bom.metadata.component, components.values())
    Path(sys.argv[1]).write_text(_stable(JsonV1Dot5(bom).output_as_string(indent=1)), "utf-8")


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', _read("src/necroscope/__init__.py"), re.M)
    assert found is not None
    return found[1]


def _python() -> Iterator[Component]:
    """Those of a node are required, those of extras optional."""
    needed = {match[1] for match in _LOCKED.finditer(_NODE.read_text())}
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        if file.stem == "build":
            continue
        for name, version, hashes in _LOCKED.findall(file.read_text()):
            yield Component(
                type=ComponentType.LIBRARY,
                name=name,
                version=version,
                purl=PackageURL("pypi", None, name, version),
                bom_ref=f"pypi/{name}@{version}",
                scope=ComponentScope.REQUIRED if name in needed else ComponentScope.OPTIONAL,
                hashes=[
                    HashType(alg=HashAlgorithm.SHA_256, content=content)
                    for content in re.findall(r"sha256:([0-9a-f]{64})", hashes)
                ],
            )


def _page() -> Iterator[Component]:
    """What npm puts into the page; the tools that build it are not shipped."""
    packages = json.loads(_read("web/package-lock.json"))["packages"]
    for name in sorted(packages[""]["dependencies"].keys() - _PAGE_TOOLS):
        package = packages[f"node_modules/{name}"]
        algorithm, _, content = package["integrity"].partition("-")
        yield Component(
            type=ComponentType.LIBRARY,
            name=name,
            version=package["version"],
            purl=PackageURL("npm", None, name, package["version"]),
            bom_ref=f"npm/{name}@{package['version']}",
            scope=ComponentScope.REQUIRED,
            hashes=[
                HashType(
                    alg=HashAlgorithm(algorithm.upper().replace("SHA", "SHA-")),
                    content=base64.b64decode(content).hex(),
                )
            ],
        )


def _stable(text: str) -> str:
    content = json.loads(text)
    content.pop("serialNumber", None)
    content["metadata"].pop("timestamp", None)
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


if __name__ == "__main__":
    main()
