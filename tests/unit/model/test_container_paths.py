"""Containers, pods and units by cgroup path, in the forms of each runtime."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.model.container_paths import ContainerPath, parse_container, parse_unit

ID = "4f1c2a" + "0" * 58
UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
UNDERSCORED = UID.replace("-", "_")
STATIC_UID = "a3f5c0d1e2b3a4958677665544332211"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/docker/{ID}", ("docker", ID, None, None)),
        (f"/docker/{ID}/init.scope", ("docker", ID, None, None)),
        (f"/system.slice/docker-{ID}.scope", ("docker", ID, None, None)),
        (
            f"/system.slice/docker-{ID}.scope/kubepods/besteffort/pod{UID}/{ID[::-1]}",
            ("kubernetes", ID[::-1], UID, "besteffort"),
        ),
        (f"/machine.slice/libpod-{ID}.scope/container", ("podman", ID, None, None)),
        (f"/libpod_parent/libpod-{ID}", ("podman", ID, None, None)),
        (
            f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope",
            ("podman", ID, None, None),
        ),
        (f"/kubepods/burstable/pod{UID}/{ID}", ("kubernetes", ID, UID, "burstable")),
        (f"/kubepods/pod{UID}/{ID}", ("kubernetes", ID, UID, "guaranteed")),
        (f"/kubepods/pod{STATIC_UID}/{ID}", ("kubernetes", ID, STATIC_UID, "guaranteed")),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
            ("containerd", ID, UID, "burstable"),
        ),
        (
            f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{ID}.scope",
            ("cri-o", ID, UID, "guaranteed"),
        ),
        (
            f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice",
            (None, None, UID, "besteffort"),
        ),
        (
            f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-conmon-{ID}.scope",
            (None, None, UID, "guaranteed"),
        ),
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{UNDERSCORED}.slice:cri-containerd:{ID}",
            ("containerd", ID, UID, "burstable"),
        ),
        (f"/ecs/0123456789abcdef0123456789abcdef/{ID}", ("ecs", ID, None, None)),
        (
            f"/ecs/cluster/task/{STATIC_UID}-1234567890",
            ("ecs", f"{STATIC_UID}-1234567890", None, None),
        ),
        ("/lxc/web1", ("lxc", "web1", None, None)),
        ("/lxc.payload.web1/system.slice", ("lxc", "web1", None, None)),
        ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", ("machine", "qemu-1-vm", None, None)),
    ],
)
def test_each_runtimes_paths_name_container_pod_and_class(
    path: str, expected: tuple[str | None, ...]
) -> None:
    assert parse_container(path) == ContainerPath(*expected)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/system.slice/ssh.service",
        "/user.slice",
        f"/machine.slice/libpod-conmon-{ID}.scope",
        "/kubepods/burstable",
        "/docker",
    ],
)
def test_other_paths_are_no_containers(path: str) -> None:
    assert parse_container(path) is None


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/system.slice/ecs.service", "ecs.service"),
        ("/system.slice/ssh.service/session", "ssh.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope",
            "user@1000.service",
        ),
        (f"/system.slice/docker-{ID}.scope", f"docker-{ID}.scope"),
        ("/docker/abc", None),
        ("/", None),
    ],
)
def test_the_unit_is_the_innermost_service_else_the_scope(path: str, unit: str | None) -> None:
    assert parse_unit(path) == unit


@given(st.text(alphabet="/:.-_adoprtcklsmn019{}\n", max_size=300))
def test_no_path_makes_it_fail(path: str) -> None:
    parse_container(path)
    parse_unit(path)


def test_a_cgroup_that_a_tenant_made_does_not_pass_for_anothers_container() -> None:
    own, victim = "a" * 64, "b" * 64
    pod = "/kubepods.slice/kubepods-pod1b2c3d4e_0000_0000_0000_000000000000.slice"
    path = f"{pod}/cri-containerd-{own}.scope/kubepods.slice/cri-containerd-{victim}.scope"
    found = parse_container(path)
    assert found is not None
    assert found.container == own
