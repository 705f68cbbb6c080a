"""What deploy/ holds works with the rest: commands exist, privileges are the least, metrics that
are named are made.
"""

import json
import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from tests.programs import needs_kubectl
from tests.rendered_manifests import kustomized, kustomized_with

from necroscope import settings
from necroscope.sources.facts import collect
from necroscope.symbols import lookup_process
from necroscope.verdicts import keeper as verdicts_keeper

yaml = pytest.importorskip("yaml", reason="needs PyYAML")

ROOT = Path(__file__).parents[1]

DEPLOY = ROOT / "deploy"

UNITS = sorted(DEPLOY.glob("necroscope*.service"))

KUSTOMIZATIONS = ("base", "events", "collector", "example")

# What the recorder itself may come to on a large node.
RECORDER_MIB = 128

RECORDER_CAPABILITIES = {"PERFMON", "BPF", "SYSLOG", "SYS_PTRACE", "DAC_READ_SEARCH"}


def objects(kind: str, name: str = "example") -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in kustomized(name) if one["kind"] == kind}


def pod(kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = objects(kind)[name]["spec"]["template"]["spec"]
    return found


def check_words(words: list[str]) -> None:
    """Raises if there is no such command, or it has not these options."""
    place = 2 if words[0] == "fleet" else 1
    command: click.Command = import_module(f"necroscope.cli.{'_'.join(words[:place])}").command
    command.make_parser(click.Context(command)).parse_args(words[place:])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_commands_that_exist(unit: Path) -> None:
    text = unit.read_text("utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=/opt/necroscope/bin/necroscope (.+)$", text, re.MULTILINE)
    check_words(shlex.split(line))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_the_units(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(
        unit.read_text("utf-8").replace("/opt/necroscope/bin/necroscope", "/bin/true"), "utf-8"
    )
    ran = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60
    )
    assert not [line for line in ran.stderr.splitlines() if unit.name in line], ran.stderr


def test_only_the_recorder_has_capabilities() -> None:
    granted = {
        unit.stem: re.findall(
            r"^CapabilityBoundingSet=(.*)$", unit.read_text("utf-8"), re.MULTILINE
        )
        for unit in UNITS
    }
    assert set(granted.pop("necroscope")[0].split()) == {
        f"CAP_{name}" for name in RECORDER_CAPABILITIES
    }
    assert set(map(tuple, granted.values())) == {("",)}


def test_a_child_of_the_recorder_takes_its_own_share_of_the_memory_and_is_killed_alone() -> None:
    unit = (DEPLOY / "necroscope.service").read_text("utf-8")
    assert re.findall(r"^OOMPolicy=(.*)$", unit, re.MULTILINE) == ["continue"]
    (unit_mib,) = re.findall(r"^MemoryMax=(\d+)M$", unit, re.MULTILINE)
    (container,) = yaml.safe_load((DEPLOY / "kubernetes/base/recorder.yaml").read_text("utf-8"))[
        "spec"
    ]["template"]["spec"]["containers"]
    pod_mib = container["resources"]["limits"]["memory"].removesuffix("Mi")
    children_bytes = sum(
        child._DATA_LIMIT_BYTES for child in (lookup_process, collect, verdicts_keeper)
    )
    assert children_bytes >> 20 <= min(int(unit_mib), int(pod_mib)) - RECORDER_MIB


def test_what_is_installed_shows_a_recording_and_a_fleet() -> None:
    installed = re.findall(r"\.\[([\w,]+)\]", (ROOT / "scripts/setup").read_text("utf-8"))
    image = (ROOT / "deploy/Containerfile").read_text("utf-8")
    assert "--require-hashes -r requirements/image.txt" in image
    locked = (ROOT / "requirements/image.txt").read_text("utf-8")
    assert {"duckdb", "fastapi", "uvicorn"} <= set(re.findall(r"^([\w-]+)==", locked, re.M))
    assert installed
    assert not [extras for extras in installed if not {"view", "fleet"} <= {*extras.split(",")}]


@needs_kubectl
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_kustomizations_render_and_their_parts_fit(name: str) -> None:
    for one in kustomized(name):
        assert {"apiVersion", "kind", "metadata"} <= one.keys()
        spec = one.get("spec", {}).get("template", {}).get("spec")
        if spec is not None:
            volumes = {volume["name"] for volume in spec["volumes"]}
            for container in (*spec["containers"], *spec.get("initContainers", ())):
                assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
                assert container["image"].startswith("registry.example/necroscope")
            assert (
                one["spec"]["selector"]["matchLabels"].items()
                <= one["spec"]["template"]["metadata"]["labels"].items()
            )


@needs_kubectl
@pytest.mark.parametrize(
    "component", sorted(path.name for path in (DEPLOY / "kubernetes/components").iterdir())
)
def test_every_component_fits_the_base(component: str, tmp_path: Path) -> None:
    added = kustomized_with(tmp_path, resources=["base"], components=[f"components/{component}"])
    assert added != kustomized("base")


@needs_kubectl
def test_patches_in_the_docs_fit(tmp_path: Path) -> None:
    blocks = re.findall(
        r"```yaml\n(patches:.*?)```",
        (ROOT / "docs" / "kubernetes.md").read_text("utf-8"),
        re.DOTALL,
    )
    assert len(blocks) == 3
    for block in blocks:
        kustomized_with(
            tmp_path,
            resources=["base", "collector"],
            components=["components/push"],
            **yaml.safe_load(block),
        )


@needs_kubectl
def test_the_zone_of_a_node_is_pushed_where_its_pods_carry_it() -> None:
    (push,) = [
        one for one in pod("DaemonSet", "necroscope-outlet")["containers"] if one["name"] == "push"
    ]
    (zone,) = [one for one in push["env"] if one["name"] == "NECROSCOPE_LABEL_ZONE"]
    assert zone["valueFrom"] == {
        "fieldRef": {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}
    }


@needs_kubectl
def test_containers_start_commands_that_exist() -> None:
    for one in kustomized("example"):
        for container in (
            one.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
        ):
            check_words(container["args"])


@needs_kubectl
def test_the_recorder_has_five_capabilities_and_talks_to_nobody() -> None:
    spec = pod("DaemonSet", "necroscope-recorder")
    (container,) = spec["containers"]
    context = container["securityContext"]
    assert (spec["hostPID"], spec["hostNetwork"], spec["automountServiceAccountToken"]) == (
        True,
        True,
        False,
    )
    assert context["capabilities"]["drop"] == ["ALL"]
    assert set(context["capabilities"]["add"]) == RECORDER_CAPABILITIES
    assert (
        context["privileged"],
        context["allowPrivilegeEscalation"],
        context["readOnlyRootFilesystem"],
    ) == (False, False, True)
    assert "ports" not in container
    assert [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")] == [
        "recording",
        "tmp",
    ]


@needs_kubectl
@pytest.mark.parametrize(
    ("kind", "name"), [("DaemonSet", "necroscope-outlet"), ("Deployment", "necroscope-collector")]
)
def test_whoever_talks_sees_nothing_of_the_node(kind: str, name: str) -> None:
    spec = pod(kind, name)
    assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
    assert spec["automountServiceAccountToken"] is False
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        context = container["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert (
            context["privileged"],
            context["allowPrivilegeEscalation"],
            context["readOnlyRootFilesystem"],
        ) == (
            False,
            False,
            True,
        )
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
    paths = {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    assert paths == (
        {"/var/lib/necroscope", "/var/lib/necroscope-outlet"} if kind == "DaemonSet" else set()
    )


@needs_kubectl
def test_only_notify_gets_a_token_and_may_do_two_things() -> None:
    containers = pod("DaemonSet", "necroscope-outlet")["containers"]
    holding = [
        one["name"]
        for one in containers
        for mount in one["volumeMounts"]
        if mount["name"] == "credentials"
    ]
    assert holding == ["notify"]
    rules = [
        rule
        for kind in ("Role", "ClusterRole")
        for role in objects(kind).values()
        for rule in role["rules"]
    ]
    assert sorted((tuple(rule["resources"]), tuple(rule["verbs"])) for rule in rules) == [
        (("events",), ("create",)),
        (("nodes/status",), ("patch",)),
    ]
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in objects(kind).values():
            assert binding["subjects"] == [
                {"kind": "ServiceAccount", "name": "necroscope-outlet", "namespace": "necroscope"}
            ]


@needs_kubectl
def test_the_way_to_the_kernel_log_device_is_the_one_privileged_container() -> None:
    overlay = [
        name for name in KUSTOMIZATIONS if '"privileged": true' in json.dumps(kustomized(name))
    ]
    assert overlay == []
    component = yaml.safe_load(
        (DEPLOY / "kubernetes/components/kernel-log-device/kustomization.yaml").read_text("utf-8")
    )
    assert "privileged: true" in component["patches"][0]["patch"]


def test_the_settings_of_the_cluster_are_settings() -> None:
    chosen = settings.parse(settings.read_file(DEPLOY / "kubernetes" / "base" / "necroscope.toml"))
    assert str(chosen.host_root) == "/host"


def test_secrets_are_examples_only() -> None:
    example = DEPLOY / "kubernetes" / "collector" / "secrets.example.yaml"
    assert {one["kind"] for one in yaml.safe_load_all(example.read_text("utf-8"))} == {"Secret"}
    others = [path for path in (DEPLOY / "kubernetes").rglob("*.yaml") if path != example]
    assert not [path for path in others if "kind: Secret" in path.read_text("utf-8")]


@needs_kubectl
def test_an_outlet_that_was_taken_over_changes_one_condition_of_its_own_node() -> None:
    policy = objects("ValidatingAdmissionPolicy", "base")["necroscope-own-node-only"]["spec"]
    said = " ".join(rule["expression"] for rule in policy["validations"])
    # Every field of NodeStatus (core/v1) but `conditions`.
    for field in [
        "addresses",
        "allocatable",
        "capacity",
        "config",
        "daemonEndpoints",
        "features",
        "images",
        "nodeInfo",
        "phase",
        "runtimeHandlers",
        "volumesAttached",
        "volumesInUse",
    ]:
        assert f"object.status.?{field} == oldObject.status.?{field}" in said
    assert "oldObject.status.conditions.all(old" in said
    assert "ValidatingAdmissionPolicyBinding" in {one["kind"] for one in kustomized("base")}
