"""The cgroup of a task: v1, v2 and hybrid, from the node's root also where we read from within a
cgroup namespace.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.symbols import task_cgroup
from necroscope.symbols.task_cgroup import find_own_roots, parse_cgroup

V1 = b"""12:pids:/user.slice
4:memory:/kubepods/besteffort/pod1
3:cpu,cpuacct:/kubepods
1:name=systemd:/init.scope
"""
HYBRID = V1 + b"0::/unified/path\n"
HYBRID_MEMORY_IN_V2 = b"2:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/system.slice/ray.service\n"


def test_v1_gives_the_path_of_the_memory_controller() -> None:
    assert parse_cgroup(V1, {}) == "/kubepods/besteffort/pod1"


def test_v2_gives_its_only_path() -> None:
    assert (
        parse_cgroup(b"0::/system.slice/kubelet.service\n", {}) == "/system.slice/kubelet.service"
    )


def test_hybrid_prefers_memory_where_v1_has_it(data: Path) -> None:
    assert parse_cgroup(HYBRID, {}) == "/kubepods/besteffort/pod1"
    assert parse_cgroup(HYBRID_MEMORY_IN_V2, {}) == "/system.slice/ray.service"
    assert (parse_cgroup((data / "cgroup_hybrid.txt").read_bytes(), {}) or "").startswith(
        "/process_api/"
    )


def test_memory_mounted_together_with_others_is_found() -> None:
    assert parse_cgroup(b"5:cpu,memory:/both\n0::/\n", {}) == "/both"


@pytest.mark.parametrize("text", ["", "\n", "3:cpu:/x\n", "garbage", "::", "1:name=systemd:/x"])
def test_without_memory_and_v2_there_is_no_path(text: str) -> None:
    assert parse_cgroup(text.encode(), {}) is None


def test_a_path_may_hold_colons() -> None:
    assert parse_cgroup(b"0::/a:b:c\n", {}) == "/a:b:c"


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_a_cgroups_name_cannot_forge_another_line(separator: str) -> None:
    forged = f"0::/pod/x{separator}4:memory:/system.slice/innocent.service\n"
    path = parse_cgroup(forged.encode(), {})
    assert path is not None
    assert path.startswith("/pod/x\\")
    assert not path.startswith("/system.slice")


@pytest.mark.parametrize(
    ("seen", "path"),
    [
        ("/", "/pods/pod1/recorder"),
        ("/child", "/pods/pod1/recorder/child"),
        ("/..", "/pods/pod1"),
        ("/../sibling", "/pods/pod1/sibling"),
        ("/../../..", "/"),
        ("/../../../system.slice/x.service", "/system.slice/x.service"),
        ("/../..two dots", "/pods/pod1/..two dots"),
        ("/..two dots", "/pods/pod1/recorder/..two dots"),
        ("/../../../../above", "/../../../../above"),
    ],
)
def test_a_path_seen_from_a_namespace_is_told_from_the_nodes_root(seen: str, path: str) -> None:
    assert parse_cgroup(f"0::{seen}\n".encode(), {b"": b"/pods/pod1/recorder"}) == path
    assert (
        parse_cgroup(
            f"0::/\n4:memory:{seen}\n".encode(), {b"memory": b"/pods/pod1/recorder", b"": b"/other"}
        )
        == path
    )


@pytest.mark.parametrize("seen", ["/", "/..", "/../../x"])
def test_where_it_is_not_known_how_the_namespace_begins_a_path_stays_as_it_is(seen: str) -> None:
    assert parse_cgroup(f"0::{seen}\n".encode(), {b"memory": b"/pods/pod1"}) == seen


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The node's hierarchy, and what a container has mounted of it as its own: a link here, a mount
    there.
    """
    for path in (
        "system.slice/x.service/recorder",
        "pods/pod1/recorder/child",
        "pods/pod2/recorder",
    ):
        (tmp_path / "host" / path).mkdir(parents=True)
    (tmp_path / "own").symlink_to("host/pods/pod1/recorder")
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path


def write_mounts(node: Path, *mounts: str) -> None:
    lines = [
        "1 1 0:1 / / rw - ext4 /dev/vda rw",
        *(mount.replace(" @", f" {node}/") for mount in mounts),
    ]
    (node / "proc/self/mountinfo").write_text("\n".join(lines) + "\n")


def test_a_namespace_of_v2_is_found_below_the_host_mount(node: Path) -> None:
    write_mounts(
        node,
        "2 1 0:26 / @own ro - cgroup2 cgroup rw",
        "3 1 0:26 /../../.. @host ro - cgroup2 cgroup2 rw,nsdelegate",
    )
    assert find_own_roots(node / "proc") == {b"": b"/pods/pod1/recorder"}


def test_a_namespace_has_a_path_in_each_hierarchy_of_v1(node: Path) -> None:
    (node / "cpu").symlink_to("host/pods")
    write_mounts(
        node,
        *(
            "2 1 0:32 /../../.. @host rw - cgroup cgroup rw,memory",
            "3 1 0:32 / @own rw - cgroup cgroup rw,memory",
        ),
        *(
            "4 1 0:33 /.. @host rw - cgroup cgroup rw,cpu",
            "5 1 0:33 / @cpu rw - cgroup cgroup rw,cpu",
        ),
        *("6 1 0:38 /.. @host rw - cgroup2 cgroup2 rw", "7 1 0:38 / @cpu rw - cgroup2 cgroup2 rw"),
    )
    assert find_own_roots(node / "proc") == {b"memory": b"/pods/pod1/recorder", b"": b"/pods"}


@pytest.mark.parametrize(
    "mounts",
    [
        [],
        ["2 1 0:26 / @host rw - cgroup2 cgroup2 rw"],
        ["2 1 0:26 /../../.. @host rw - cgroup2 cgroup2 rw"],
        [
            "2 1 0:26 / @own rw - cgroup2 cgroup2 rw",
            "3 1 0:26 /../other @host rw - cgroup2 cgroup2 rw",
        ],
        [
            "2 1 0:26 / @own rw - cgroup2 cgroup2 rw",
            "3 1 0:26 /../.. @host rw - cgroup2 cgroup2 rw",
        ],
        [
            "2 1 0:26 / @hidden rw - cgroup2 cgroup2 rw",
            "3 1 0:26 /../../.. @host rw - cgroup2 cgroup2 rw",
        ],
        [
            "2 1 0:26 / /proc rw - cgroup2 cgroup2 rw",
            "3 1 0:26 /../../.. @host rw - cgroup2 cgroup2 rw",
        ],
    ],
    ids=[
        "no cgroups",
        "the node's namespace",
        "no mount of our own",
        "a part of the node's",
        "gone",
        "covered",
        "another device",
    ],
)
def test_a_namespace_that_cannot_be_found_is_none(node: Path, mounts: list[str]) -> None:
    write_mounts(node, *mounts)
    assert find_own_roots(node / "proc") == {}


def test_without_proc_there_is_no_namespace(tmp_path: Path) -> None:
    assert find_own_roots(tmp_path) == {}


def test_the_search_is_bounded(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mounts(
        node,
        "2 1 0:26 / @own ro - cgroup2 cgroup rw",
        "3 1 0:26 /../../.. @host ro - cgroup2 cgroup2 rw",
    )
    monkeypatch.setattr(task_cgroup, "_LISTED_LIMIT", 0)
    assert find_own_roots(node / "proc") == {}


# Run where a container's runtime has put it: in a cgroup and a namespace of its own, with a mount
# of what that shows.
IN_A_NAMESPACE = """
import json, pathlib, subprocess, sys
from necroscope.symbols.task_cgroup import find_own_roots, parse_cgroup
proc = pathlib.Path("/proc")
print(json.dumps([parse_cgroup((proc / pid / "cgroup").read_bytes(), find_own_roots(proc)) for pid in ("self", sys.argv[1])]))
"""


@pytest.fixture
def cgroup() -> Iterator[tuple[Path, str]]:
    """A cgroup of the hierarchy that tasks are listed in, below our own, with the type and option of
    its mount.
    """
    memory = Path("/sys/fs/cgroup/memory")
    top, mount = (
        (memory, "-t cgroup -o memory")
        if memory.is_dir()
        else (Path("/sys/fs/cgroup"), "-t cgroup2")
    )
    path = (
        top
        / (parse_cgroup(Path("/proc/self/cgroup").read_bytes(), {}) or "/").lstrip("/")
        / f"necro-namespace-{os.getpid()}"
    )
    path.mkdir()
    yield path, mount
    path.rmdir()


@pytest.mark.root
@pytest.mark.kernel
def test_from_within_a_namespace_the_running_kernel_is_read_rightly(
    cgroup: tuple[Path, str], tmp_path: Path
) -> None:
    path, mount = cgroup
    inner = f'mount {mount} none {tmp_path} && exec "$@"'
    outer = (
        f"echo $$ > {path}/cgroup.procs && exec unshare --cgroup --mount sh -c '{inner}' sh \"$@\""
    )
    command = ["sh", "-c", outer, "sh", sys.executable, "-c", IN_A_NAMESPACE, str(os.getpid())]
    answer = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout
    )
    own = parse_cgroup(Path("/proc/self/cgroup").read_bytes(), {}) or ""
    assert answer == [f"{own.rstrip('/')}/{path.name}", own]
