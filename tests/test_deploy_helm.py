"""The Helm chart makes the same objects as deploy/kubernetes, and refuses values it does not know."""

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.programs import needs_helm, needs_kubectl, program
from tests.rendered_manifests import (
    CHART,
    Objects,
    charted,
    kustomized,
    kustomized_with,
    run,
)

import necroscope
from necroscope import settings

pytestmark = needs_helm

# What Helm itself expects on its objects, and what restarts the recorders after a change of the settings.
CHARTS_OWN = (
    "helm.sh/",
    "checksum/",
    *(f"app.kubernetes.io/{name}" for name in ("instance", "version", "managed-by")),
)
CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}

EVERYTHING = {
    "collector.enabled": True,
    "outlet.push.enabled": True,
    "outlet.webhook.enabled": True,
}
COMPONENTS: dict[str, dict[str, Any]] = {
    "kernel-log-device": {"recorder.kernelLogDevice": True},
    "pod-monitor": {"outlet.podMonitor.enabled": True},
    "push": {"outlet.push.enabled": True},
    "seccomp-profile": {
        "recorder.seccompProfile": {
            "type": "Localhost",
            "localhostProfile": "necroscope-recorder.json",
        }
    },
    "seccomp-unconfined": {"recorder.seccompProfile.type": "Unconfined"},
    "webhook": {"outlet.webhook.enabled": True},
}


def comparable(value: Any) -> Any:
    """The same for both: lists of named things by name, no image tag, nothing of Helm's own."""
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "name" in each for each in value):
            # A name occurs twice in mounts of one volume.
            return sorted((comparable(each) for each in value), key=json.dumps)
        return [comparable(each) for each in value]
    if isinstance(value, dict):
        kept = {
            key: comparable(each) for key, each in value.items() if not key.startswith(CHARTS_OWN)
        }
        return {
            key: each
            for key, each in sorted(kept.items())
            if each != {} or key not in {"annotations", "labels"}
        }
    if isinstance(value, str) and value.startswith("registry.example/necroscope"):
        return "image"
    return value


def by_name(objects: Objects) -> dict[tuple[str, str], Any]:
    found = {}
    for one in copy.deepcopy(objects):
        if one["kind"] == "Namespace":  # Helm keeps its release in one, so it must exist before
            continue
        if one["kind"] in CLUSTER_WIDE:  # kustomize does not know all of them; the API server does
            one["metadata"].pop("namespace", None)
        if one["kind"] == "ConfigMap":  # kustomize adds a hash to its name
            one["metadata"]["name"] = "necroscope-settings"
            one["data"] = tomllib.loads(one["data"]["necroscope.toml"])
        for volume in one.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", ()):
            if "configMap" in volume:
                volume["configMap"]["name"] = "necroscope-settings"
        found[one["kind"], one["metadata"]["name"]] = comparable(one)
    return found


def test_helms_own_lint_finds_nothing() -> None:
    for words in ((), ("--set-json", f"collector={json.dumps({'enabled': True})}")):
        ran = run(str(program("helm")), "lint", "--strict", CHART, *words)
        assert ran.returncode == 0, ran.stdout
        assert "[WARNING]" not in ran.stdout


@needs_kubectl
def test_the_chart_makes_what_the_example_of_kustomize_makes() -> None:
    assert by_name(charted(EVERYTHING)) == by_name(kustomized("example"))


@needs_kubectl
def test_by_default_the_chart_is_the_base_with_its_events() -> None:
    parts = [*kustomized("base"), *kustomized("events")]
    assert by_name(charted({})) == by_name(parts)


@needs_kubectl
@pytest.mark.parametrize(
    "component",
    sorted(path.name for path in (CHART.parents[1] / "kubernetes/components").iterdir()),
)
def test_every_component_of_kustomize_is_a_value_of_the_chart(
    component: str, tmp_path: Path
) -> None:
    wanted = kustomized_with(tmp_path, resources=["base"], components=[f"components/{component}"])
    made = charted({"outlet.events": False, **COMPONENTS[component]})
    assert by_name(made) == by_name(wanted)


def test_the_chart_stays_in_the_namespace_of_its_release() -> None:
    made = charted(EVERYTHING, namespace="observability")
    outside = [one for one in made if one["metadata"].get("namespace") != "observability"]
    assert {one["kind"] for one in outside} == {*CLUSTER_WIDE, "Role", "RoleBinding"}
    text = json.dumps(made)
    assert "serviceaccount:observability:necroscope-outlet" in text
    assert "https://necroscope-collector.observability.svc:7443" in text
    assert '"namespace": "necroscope"' not in text


def test_settings_of_the_chart_are_settings_of_the_recorder(tmp_path: Path) -> None:
    values = {"recorder.settings": {"max-bytes": "2GiB", "free-floor": 20, "hz": 49}}
    (config,) = (one for one in charted(values) if one["kind"] == "ConfigMap")
    file = tmp_path / "necroscope.toml"
    file.write_text(config["data"]["necroscope.toml"])
    chosen = settings.parse(settings.read_file(file))
    assert (str(chosen.host_root), chosen.max_bytes, chosen.hz) == ("/host", 2 << 30, 49)


def test_an_object_store_needs_no_volume_and_may_have_several_collectors() -> None:
    values = {**EVERYTHING, "collector.lake": "s3://bucket/lake", "collector.replicas": 2}
    made = charted(values)
    assert "PersistentVolumeClaim" not in {one["kind"] for one in made}
    (collector,) = (one for one in made if one["kind"] == "Deployment")
    assert collector["spec"]["strategy"] == {"type": "RollingUpdate"}
    assert (
        "--lake=s3://bucket/lake" in collector["spec"]["template"]["spec"]["containers"][0]["args"]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("colector.enabled=true", "colector"),
        ("outlet.push.url=http://plain.example", "outlet.push.url"),
        ("recorder.settings.host-root=/", "host-root"),
        ("collector.enabled=true,collector.replicas=2", "object store"),
    ],
)
def test_values_that_cannot_work_are_refused(words: str, said: str) -> None:
    ran = run(str(program("helm")), "template", "necroscope", CHART, "--set", words)
    assert ran.returncode != 0
    assert said in ran.stderr


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (necroscope.__version__,) * 2
