"""Real Docker and Podman daemons with a container that crashes again and again; started here, ended
here.
"""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.model.reading import Moment
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.containers.connections import ConnectionLog
from necroscope.sources.containers.container_log import read_last_lines
from necroscope.sources.containers.containers import Containers

pytestmark = [pytest.mark.kernel, pytest.mark.root]
COLUMNS = [column.name for column in TABLES["containers"].columns]
# A program that needs no library: it is all there is in the image. It ends at once, not knowing the
# option it is given.
PROGRAM = shutil.which("busybox") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
CRASH = ["/program", "--no-such-option"]
# Without these runc inherits limits that a container may not have.
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]


def image() -> bytes:
    """A file system of one program."""
    assert PROGRAM is not None
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(os.path.realpath(PROGRAM), "program")
    return content.getvalue()


def run(*command: str, **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def wait_for(is_true: Callable[[], Any], seconds: float = 30) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := is_true()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.1)
    return answer


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: sockets lie deep below it, and their paths must not be longer than 107
    bytes.
    """
    path = Path(tempfile.mkdtemp(prefix="necroscope-"))
    yield path
    subprocess.run(
        ["umount", str(path / "data-root"), str(path / "root/overlay")],
        capture_output=True,
        check=False,
    )
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def podman(place: Path) -> Iterator[tuple[str, Path, list[str]]]:
    program = shutil.which("podman")
    if program is None or PROGRAM is None:
        pytest.skip("needs podman and a program without libraries")
    places = [f"--{name}={place / name}" for name in ("root", "runroot", "tmpdir")]
    command = [
        program,
        *places,
        "--runtime=runc",
        "--cgroup-manager=cgroupfs",
        "--events-backend=file",
    ]
    socket = place / "podman.sock"
    service = subprocess.Popen(
        [*command, "system", "service", "--time", "0", f"unix://{socket}"],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(socket.exists)
        yield "podman", socket, command
    finally:
        subprocess.run(
            [*command, "rm", "--force", "--time", "0", "--all"],
            capture_output=True,
            timeout=60,
            check=False,
        )
        service.terminate()
        service.wait(20)
        remove_cgroups("libpod_parent")


@pytest.fixture
def docker(place: Path) -> Iterator[tuple[str, Path, list[str]]]:
    program, client = shutil.which("dockerd"), shutil.which("docker")
    if program is None or client is None or PROGRAM is None:
        pytest.skip("needs dockerd and a program without libraries")
    socket = place / "docker.sock"
    places = [f"--{name}={place / name}" for name in ("data-root", "exec-root", "pidfile")]
    options = [
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
        "--storage-driver=overlay2",
        f"--host=unix://{socket}",
    ]
    with (place / "log").open("wb") as log:
        daemon = subprocess.Popen([program, *places, *options], stdout=log, stderr=log)
    command = [client, f"--host=unix://{socket}"]
    try:
        wait_for(
            lambda: (
                subprocess.run([*command, "info"], capture_output=True, check=False).returncode == 0
            ),
            60,
        )
        yield "docker", socket, command
    finally:
        names = (
            subprocess.run([*command, "ps", "-aq"], capture_output=True, check=False)
            .stdout.decode()
            .split()
        )
        subprocess.run(
            [*command, "rm", "--force", *names], capture_output=True, timeout=60, check=False
        )
        daemon.terminate()
        daemon.wait(30)
        remove_cgroups("docker")


def remove_cgroups(name: str) -> None:
    def is_gone(folder: str) -> bool:
        # A container's monitor may outlive it by a moment, and its cgroup with it.
        try:
            os.rmdir(folder)
        except OSError as error:
            return error.errno == errno.ENOENT
        return True

    for top in Path("/sys/fs/cgroup").glob(f"*/{name}"):
        for folder, _, _ in os.walk(top, topdown=False):
            wait_for(lambda folder=folder: is_gone(folder))


@pytest.mark.parametrize("runtime", ["podman", "docker"])
def test_a_crash_loop_has_its_restarts_its_deaths_and_its_exit_code(
    runtime: str, request: pytest.FixtureRequest
) -> None:
    name, socket, command = request.getfixturevalue(runtime)
    run(*command, "import", "-", "tiny", input=image())
    started = [
        *command,
        "run",
        "--detach",
        "--name=crash",
        "--network=none",
        *LIMITS,
        "--restart=always",
        "tiny",
        *CRASH,
    ]
    run(*started)
    source = Containers(Path("/"), NS_PER_S, ((name, str(socket)),))
    rows: list[dict[str, Any]] = []
    events: list[Any] = []

    def has_crashed_again() -> bool:
        reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
        assert reading.trouble is None
        rows.extend(
            dict(zip(COLUMNS, row, strict=True)) for row in reading.rows.get("containers", [])
        )
        events.extend(reading.rows.get("events", []))
        counts = {row["restarts"] for row in rows if row["name"] == "crash"}
        return len(counts) > 2 and {"container_die", "container_start"} <= {
            row[1] for row in events
        }

    wait_for(has_crashed_again)
    source.close()
    crash = [row for row in rows if row["name"] == "crash"]
    assert {row["runtime"] for row in crash} == {name}
    ended = subprocess.run([PROGRAM, CRASH[1]], capture_output=True, check=False).returncode
    assert {json.loads(row[13])["exit_code"] for row in events if row[1] == "container_die"} == {
        ended
    }
    assert [row["restarts"] for row in crash] == sorted(row["restarts"] for row in crash)
    lines = read_last_lines(Path("/"), ((name, str(socket)),), "crash", 3, 10)
    assert any("program" in line for line in lines), lines


HOLD_CONNECTION = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
    " print('connected', flush=True); sys.stdin.read()"
)


@pytest.fixture
def unit_cgroup() -> Iterator[Path]:
    """The cgroup of a service, where systemd would have it."""
    tops = [Path("/sys/fs/cgroup", name) for name in ("systemd", "unified", "")]
    top = next(top for top in tops if (top / "cgroup.procs").exists())
    folder = top / f"necroscope-test-{os.getpid()}" / "ecs.service"
    folder.mkdir(parents=True)
    yield folder
    folder.rmdir()
    folder.parent.rmdir()


def test_the_unit_that_is_connected_when_a_container_starts_made_it(
    podman: tuple[str, Path, list[str]], unit_cgroup: Path
) -> None:
    socket = str(podman[1])
    log = ConnectionLog(Path("/"), [socket])
    log.look(NS_PER_S)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_CONNECTION, socket],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as supervisor:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        (unit_cgroup / "cgroup.procs").write_text(str(supervisor.pid))
        supervisor.stdout.readline()
        log.look(2 * NS_PER_S)
        deadline_s = time.monotonic() + 10
        # The daemon may still have to accept the connection.
        while log.maker([2 * NS_PER_S]) is None and time.monotonic() < deadline_s:
            log.look(2 * NS_PER_S)
        supervisor.stdin.close()
        supervisor.wait(10)
    assert log.maker([NS_PER_S]) is None
    made_by = log.maker([2 * NS_PER_S])
    assert made_by is not None
    assert (made_by.unit, f"(pid {supervisor.pid})" in made_by.how) == ("ecs.service", True)


# What cri-dockerd gives a container and its pod's sandbox; the kubelet itself is not here.
KUBELET_LABELS = {
    "io.kubernetes.container.name": "agent",
    "io.kubernetes.pod.name": "agent-x2kqz",
    "io.kubernetes.pod.namespace": "kube-system",
    "io.kubernetes.pod.uid": "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
    "controller-revision-hash": "6f8d9c5b7",
}


@pytest.mark.parametrize("runtime", ["podman", "docker"])
def test_a_container_with_the_kubelets_labels_leads_to_its_daemon_set(
    runtime: str, request: pytest.FixtureRequest
) -> None:
    name, socket, command = request.getfixturevalue(runtime)
    run(*command, "import", "-", "tiny", input=image())
    labels = [f"--label={key}={value}" for key, value in KUBELET_LABELS.items()]
    made = [*command, "create", "--network=none", *LIMITS, *labels, "tiny", *CRASH]
    run(*made)
    source = Containers(Path("/"), NS_PER_S, ((name, str(socket)),))

    def owners() -> list[Any]:
        reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
        assert reading.trouble is None
        events = reading.rows.get("events", [])
        return [json.loads(str(row[13])) for row in events if row[1] == "pod_owner"]

    (found,) = wait_for(owners)
    source.close()
    assert (found["owner_kind"], found["owner"], found["namespace"]) == (
        "DaemonSet",
        "agent",
        "kube-system",
    )
