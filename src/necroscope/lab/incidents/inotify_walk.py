"""An agent looks at every descriptor of a program that watches a hundred thousand files.

What it does: a file watcher (an editor's server, a build tool, a sync client) adds an inotify watch
for each file of a large tree. An agent reads the fdinfo of its descriptors every moment, as `lsof`
and checkpoint tools do. The kernel writes a line for each watch, all in one record: it starts again
with twice the buffer until they fit.

Seen in the wild: `lsof +fg`, CRIU and Sysdig's collector next to VS Code servers and kubelet's
watches of config maps; fs/notify/fdinfo.c.

What must be seen: one core in system mode in `inotify_show_fdinfo` below a read of a file in
/proc/PID/fdinfo; watches (slab cache inotify_inode_mark) that grow; the program that watches.
The twin reads the fdinfo of a program with few watches as hard.
"""

import ctypes
import os
import time
from pathlib import Path

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

_ALL_EVENTS = 0xFFF
_libc = ctypes.CDLL(None, use_errno=True)


def watch_files(tree: str, number_file: str, first: int, more_per_s: float, directory: str) -> None:
    """A file each, new when it is watched."""
    descriptor = _libc.inotify_init1(os.O_CLOEXEC)
    Path(number_file).write_text(str(descriptor))
    for number in growing(first, more_per_s, directory):
        path = f"{tree}/{number}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        if _libc.inotify_add_watch(descriptor, path.encode(), _ALL_EVENTS) < 0:
            raise OSError(ctypes.get_errno(), "cannot watch it")


class InotifyWalk(StateWalk):
    name = "inotify-walk"
    twin = "inotify-walk-few"
    population = ("slab:inotify_inode_mark",)
    first, more_per_s = 120_000, 5_000

    def prepare(self, stage: Stage) -> None:
        stage.set_file("/proc/sys/fs/inotify/max_user_watches", 400_000)
        super().prepare(stage)

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        tree = stage.mount_tmpfs(1 << 30, nr_inodes=400_000)
        self.descriptor = stage.scratch / "descriptor"
        arguments = (str(tree), str(self.descriptor), first, more_per_s, str(stage.scratch))
        return stage.start(watch_files, *arguments, cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        while not self.descriptor.exists():
            time.sleep(0.01)
        number = self.descriptor.read_text()
        return self.start_reader(stage, f"/proc/{self.maker.pid}/fdinfo/{number}")
