"""The Kubernetes objects that deploy/ comes to: by kubectl's kustomize, and by Helm."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.programs import program

DEPLOY = Path(__file__).parents[1] / "deploy"
CHART = DEPLOY / "helm" / "necroscope"

Objects = list[dict[str, Any]]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60)


def rendered_by(*words: str | Path) -> Objects:
    ran = run(*words)
    assert ran.returncode == 0, ran.stderr
    return [one for one in yaml.safe_load_all(ran.stdout) if one]


@cache
def kustomized(name: str) -> Objects:
    return rendered_by(str(program("kubectl")), "kustomize", DEPLOY / "kubernetes" / name)


def kustomized_with(folder: Path, **parts: Any) -> Objects:
    """A kustomization of ours in `folder`; resources and components are named below deploy/kubernetes."""
    paths = {
        kind: [os.path.relpath(DEPLOY / "kubernetes" / name, folder) for name in parts.pop(kind)]
        for kind in ("resources", "components")
        if kind in parts
    }
    (folder / "kustomization.yaml").write_text(json.dumps({**paths, **parts}))
    return rendered_by(str(program("kubectl")), "kustomize", folder)


def charted(values: dict[str, Any], namespace: str = "necroscope") -> Objects:
    words = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
    command = (str(program("helm")), "template", "necroscope", CHART, "--namespace", namespace)
    return rendered_by(*command, *words)
