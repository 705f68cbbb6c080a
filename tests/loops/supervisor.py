"""The supervisor of one run: a unit that removes and re-creates its container under the same name,
as ecs-init does, so that no restart counter rises.
"""

import io
import os
import random
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.loops.systemd_node import CGROUP, SystemdNode

_PODMAN = ["podman", "--events-backend=file"]
_FILES = {
    "/etc/containers/containers.conf": (
        '[engine]\nruntime="runc"\ncgroup_manager="cgroupfs"\nevents_logger="file"\n'
    ),
    "/etc/containers/storage.conf": (
        '[storage]\ndriver="vfs"\ngraphroot="/var/lib/containers/storage"\n'
        'runroot="/run/containers/storage"\n'
    ),
}
_SCRIPT = """#!/bin/sh
while :; do
  podman rm --force --ignore --time 0 {name} >/dev/null 2>&1
  podman run --detach --name {name} --network none --cgroup-parent /{cgroup}/{parent} \\
    --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --volume {state}:/state {image} \\
    /busybox sh -c "echo no credentials; echo x > /state/\\$RANDOM; sleep {life}; exit {code}"
  podman wait {name} >/dev/null
  sleep {pause}
done
"""


@dataclass(frozen=True)
class Supervisor:
    """What the answer has to name."""

    unit: str
    file: str
    name: str
    image: str
    code: int
    parent: str
    state: str


def import_program(node: SystemdNode, program: Path, image: str) -> None:
    """An image of one program."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(program, "busybox")
    (node.root / "image.tar").write_bytes(content.getvalue())
    node.inside(*_PODMAN, "import", "/image.tar", image)


def prepare(node: SystemdNode) -> None:
    for path, text in _FILES.items():
        node.write(path, text)
    shutil.rmtree(node.root / "var/lib/containers", ignore_errors=True)


def start(node: SystemdNode, dice: random.Random, program: Path) -> Supervisor:
    word = f"{dice.choice(('agent', 'metrics', 'sync', 'relay'))}-{dice.randrange(16**6):06x}"
    image = f"registry.example/{word}:1.{dice.randrange(40)}"
    made = Supervisor(
        f"{word}-init.service",
        f"/usr/lib/systemd/system/{word}-init.service",
        word,
        image,
        dice.choice((1, 3, 5, 70)),
        f"{word}-containers",
        f"/var/lib/{word}",
    )
    import_program(node, program, image)
    (node.root / made.state.lstrip("/")).mkdir(parents=True)
    node.inside("mount", "-t", "tmpfs", "tmpfs", made.state)
    script = _SCRIPT.format(
        name=word,
        cgroup=CGROUP,
        parent=made.parent,
        state=made.state,
        image=image,
        life=dice.choice(("0", "0.5", "1")),
        code=made.code,
        pause=dice.choice(("0.5", "1")),
    )
    node.write(f"/usr/lib/{word}/init", script, 0o755)
    unit = f"[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/lib/{word}/init\n"
    node.write(made.file, unit)
    node.inside("systemctl", "daemon-reload")
    node.inside("systemctl", "start", made.unit)
    return made


def stop(node: SystemdNode, made: Supervisor) -> None:
    node.inside("systemctl", "stop", made.unit)
    node.inside(*_PODMAN, "rm", "--all", "--force", "--time", "0")
    node.inside("umount", "-l", made.state)
    os.sync()
