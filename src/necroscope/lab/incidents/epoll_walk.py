"""An agent looks at the descriptors of a proxy whose epoll set only grows.

What it does: a proxy adds a duplicate of a descriptor to its epoll set and closes the duplicate.
The item stays for as long as the file itself is open: a leak that no count of descriptors shows. An
agent reads the fdinfo of the epoll descriptor every moment, as `lsof` and checkpoint tools do. The
kernel walks the tree of items and writes a line for each, from the start again until they fit.

Seen in the wild: libuv and Go programs that dup descriptors of an event loop (epoll(7), "closing a
file descriptor"); CRIU; fs/eventpoll.c.

What must be seen: one core in system mode in `ep_show_fdinfo` below a read; epoll items (slab cache
eventpoll_epi) that grow; the proxy. The twin reads the fdinfo of a small epoll set as hard.
"""

import os
import select
import time
from pathlib import Path

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

# An item is known by its file and the number of the descriptor: as many numbers, then a new file.
_NUMBERS = 3_000
_FIRST_NUMBER = 500


def leak_items(number_file: str, first: int, more_per_s: float, directory: str) -> None:
    items = select.epoll()
    Path(number_file).write_text(str(items.fileno()))
    pipe, _ = os.pipe()
    for number in growing(first, more_per_s, directory):
        if number % _NUMBERS == 0:
            pipe, _ = os.pipe()
        copy = os.dup2(pipe, _FIRST_NUMBER + number % _NUMBERS)
        items.register(copy, select.EPOLLIN)
        os.close(copy)


class EpollWalk(StateWalk):
    name = "epoll-walk"
    twin = "epoll-walk-few"
    population = ("slab:eventpoll_epi",)
    first, more_per_s = 120_000, 6_000

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        self.descriptor = stage.scratch / "descriptor"
        arguments = (str(self.descriptor), first, more_per_s, str(stage.scratch))
        return stage.start(leak_items, *arguments, cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        while not self.descriptor.exists():
            time.sleep(0.01)
        number = self.descriptor.read_text()
        return self.start_reader(stage, f"/proc/{self.maker.pid}/fdinfo/{number}")
