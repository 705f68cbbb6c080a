"""The supervisor of one run: a unit that removes and re-creates its container under the same name,
as ecs-init does, so that no restart counter rises.

Its client is the engine's own program, which names the container, or a program that only speaks
with the engine's socket and is known by nothing but its connection.
"""

import io
import json
import os
import random
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.loops.systemd_node import CGROUP, SystemdNode

LAST_LINE = "no credentials"
_BY_COMMAND = """#!/bin/sh
while :; do
  {engine} rm {force} {name} >/dev/null 2>&1
  {engine} run --detach --name {name} --network none --cgroup-parent {cgroup} \\
    --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --volume {state}:/state {image} \\
    /busybox sh -c '{command}'
  {engine} wait {name} >/dev/null
  sleep {pause}
done
"""
_BY_SOCKET = """#!/bin/sh
ask() {{ curl --silent --output /dev/null --unix-socket /run/{socket} "$@"; }}
while :; do
  ask --request DELETE 'http://engine/containers/{name}?force=1'
  ask --header 'Content-Type: application/json' --data @/usr/lib/{name}/container.json \\
    'http://engine/containers/create?name={name}'
  ask --request POST http://engine/containers/{name}/start
  ask --request POST http://engine/containers/{name}/wait
  sleep {pause}
done
"""


@dataclass(frozen=True)
class Supervisor:
    """What the answer has to name, and where it lives."""

    unit: str
    file: str
    name: str
    image: str
    code: int
    parent: str
    state: str
    life: str
    pause: str

    @property
    def cgroup(self) -> str:
        return f"/{CGROUP}/{self.parent}"

    @property
    def command(self) -> str:
        return f"echo {LAST_LINE}; echo x > /state/$RANDOM; sleep {self.life}; exit {self.code}"


def import_program(node: SystemdNode, program: Path, image: str) -> None:
    """An image of one program."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(program, "busybox")
    (node.root / "image.tar").write_bytes(content.getvalue())
    node.inside(node.engine.program, "import", "/image.tar", image)


def prepare(node: SystemdNode) -> None:
    for directory in node.engine.state_directories:
        shutil.rmtree(node.root / directory.lstrip("/"), ignore_errors=True)


def choose(dice: random.Random) -> Supervisor:
    word = f"{dice.choice(('agent', 'metrics', 'sync', 'relay'))}-{dice.randrange(16**6):06x}"
    return Supervisor(
        f"{word}-init.service",
        f"/usr/lib/systemd/system/{word}-init.service",
        word,
        f"registry.example/{word}:1.{dice.randrange(40)}",
        dice.choice((1, 3, 5, 70)),
        f"{word}-containers",
        f"/var/lib/{word}",
        dice.choice(("0", "0.5", "1")),
        dice.choice(("0.5", "1")),
    )


def start(node: SystemdNode, made: Supervisor, program: Path, client: str) -> None:
    import_program(node, program, made.image)
    (node.root / made.state.lstrip("/")).mkdir(parents=True)
    node.inside("mount", "-t", "tmpfs", "tmpfs", made.state)
    place = f"/usr/lib/{made.name}"
    if client == "socket":
        script = _BY_SOCKET.format(socket=node.engine.socket, name=made.name, pause=made.pause)
        node.write(f"{place}/container.json", json.dumps(_container(made)))
    else:
        script = _BY_COMMAND.format(
            engine=node.engine.program,
            force=node.engine.force,
            name=made.name,
            cgroup=made.cgroup,
            state=made.state,
            image=made.image,
            command=made.command,
            pause=made.pause,
        )
    node.write(f"{place}/init", script, 0o755)
    unit = f"[Unit]\nDefaultDependencies=no\n[Service]\nExecStart={place}/init\n"
    node.write(made.file, unit)
    node.inside("systemctl", "daemon-reload")
    node.inside("systemctl", "start", made.unit)


def _container(made: Supervisor) -> dict[str, object]:
    """As Docker's API wants it."""
    limits = [{"Name": name, "Soft": 1024, "Hard": 1024} for name in ("nofile", "nproc")]
    return {
        "Image": made.image,
        "Cmd": ["/busybox", "sh", "-c", made.command],
        "HostConfig": {
            "NetworkMode": "none",
            "CgroupParent": made.cgroup,
            "Binds": [f"{made.state}:/state"],
            "Ulimits": limits,
        },
    }


def stop(node: SystemdNode, made: Supervisor) -> None:
    node.inside("systemctl", "stop", made.unit)
    engine = node.engine
    node.inside("sh", "-c", f"{engine.program} rm {engine.force} {made.name} || :")
    node.inside("umount", "-l", made.state)
    os.sync()
