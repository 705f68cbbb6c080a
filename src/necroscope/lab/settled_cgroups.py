"""Many memory cgroups that each have a little to their name, as the containers of a node have: what
reclaim has to go through.
"""

import os
from pathlib import Path

from necroscope.lab.cgroup import Cgroup
from necroscope.lab.stage import Stage


def settle_many(stage: Stage, parent: Cgroup, count: int) -> list[Cgroup]:
    """They lie below the parent."""
    directory = parent.directory("memory")
    if parent.is_v2:
        (directory / "cgroup.subtree_control").write_text("+memory")
    made = [directory / f"{stage.invent('app')}-{number}" for number in range(count)]
    for each in made:
        each.mkdir()
    home = stage.scratch / stage.invent("app")
    home.mkdir()
    names_each = stage.random.randrange(20, 40)
    stage.start(settle, str(directory), [each.name for each in made], str(home), names_each).wait(
        120
    )
    return [Cgroup(f"{parent.path}/{each.name}", {"memory": each}) for each in made]


def settle(parent: str, cgroups: list[str], home: str, names_each: int) -> None:
    """Leave in each cgroup a small file and some names that were looked up and not found."""
    for number, cgroup in enumerate(cgroups):
        Path(parent, cgroup, "cgroup.procs").write_text(str(os.getpid()))
        Path(home, f"state-{number}").write_bytes(bytes(65536))
        for name in range(names_each):
            os.access(f"{home}/{number}.{name}.conf", os.F_OK)
