"""Every install that the docs name is locked by hash, and a wheel says what it is made of."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
# Files whose name is not that of their only extra.
OF_SEVERAL = {"view": ("view", "top"), "image": ("view", "top", "fleet", "otlp", "python")}
LINE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==\S+( ; [^\\]+)? \\\n"
    r"((    --hash=sha256:[0-9a-f]{64} \\\n)*)    --hash=sha256:[0-9a-f]{64}\n"
)


def wanted(name: str) -> list[str]:
    """What pyproject.toml asks for in an install."""
    if name == "build":
        return list(PROJECT["build-system"]["requires"])
    extras = OF_SEVERAL.get(name, () if name == "node" else (name,))
    return [
        *PROJECT["project"]["dependencies"],
        *(one for extra in extras for one in EXTRAS[extra]),
    ]


def package(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


@pytest.mark.parametrize("file", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_lock_holds_all_that_is_asked_for_by_hash_and_no_registry(file: Path) -> None:
    text = "".join(
        line for line in file.read_text("utf-8").splitlines(keepends=True) if line[0] != "#"
    )
    locked = [match["name"] for match in LINE.finditer(text)]
    assert LINE.sub("", text) == "", "every line is a version with its hashes"
    assert {package(one) for one in wanted(file.stem)} <= set(locked)
    assert "://" not in text


def test_every_install_in_the_docs_has_its_lock() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "deploy/Containerfile"]
    text = "\n".join(path.read_text("utf-8") for path in documents)
    named = {frozenset(found.split(",")) for found in re.findall(r"\.\[([a-z,]+)\]'", text)}
    locked = {
        frozenset(OF_SEVERAL.get(file.stem, (file.stem,))) for file in LOCKS.glob("*.txt")
    } | {frozenset({"view"})}  # within that of view and top
    assert named <= locked


def test_the_bill_of_materials_names_the_page_and_what_a_node_needs(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx", reason="needs cyclonedx-python-lib, which builds install")
    made = [tmp_path / "first.json", tmp_path / "second.json"]
    for path in made:
        subprocess.run([sys.executable, ROOT / "scripts/sbom.py", path], check=True)
    assert made[0].read_bytes() == made[1].read_bytes()
    content = json.loads(made[0].read_text("utf-8"))
    assert content["bomFormat"] == "CycloneDX"
    scopes = {part["name"]: part["scope"] for part in content["components"]}
    assert {
        name: scopes[name] for name in ("pyarrow", "numpy", "preact", "uplot", "speedscope")
    } == dict.fromkeys(("pyarrow", "numpy", "preact", "uplot", "speedscope"), "required")
    assert scopes["duckdb"] == "optional"
    assert "vite" not in scopes
    assert all(part["hashes"] for part in content["components"])
