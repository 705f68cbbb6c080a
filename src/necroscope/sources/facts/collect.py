"""The process that collects facts, started by `facts.source`: one JSON line on stdout for each
fact, stage by stage.

Every one of these files may hang (a dead mount, a daemon), so it is a process of its own: the
recorder reads what has come, knows the stage it hangs in, and leaves it behind. Lines: ["stage",
NAME], ["fact", KIND, NAME, VALUE], ["trouble", STAGE, TEXT], ["hash", IDENTITY, DIGEST], ["end"]
after the last fact but hashes, which come at 1 % of a core.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.allocator import give_memory_back
from necroscope.model.library_pages import release_library_pages
from necroscope.sources.facts import (
    executables,
    hardware,
    images,
    kernel,
    mounts,
    network,
    own,
    packages,
    pinning,
    place,
    services,
)
from necroscope.sources.facts.collector import EXECUTABLES
from necroscope.sources.facts.fact import Fact

STAGES: Final[dict[str, Callable[[Path], Iterable[Fact]]]] = {
    "kernel": kernel.collect,
    "hardware": hardware.collect,
    "network": network.collect,
    "mounts": mounts.collect,
    "place": place.collect,
    "services": services.collect,
    "pinning": pinning.collect,
    "images": images.collect,
    "packages": packages.collect,
}
METADATA: Final = "metadata"
OWN: Final = "own"
_NICE: Final = 19
_PR_SET_PDEATHSIG: Final = 1
# Of the 512 MiB that the service and the pod may take; 931 facts of a node took 13 MiB.
_DATA_LIMIT_BYTES: Final = 128 << 20
_KNOWN_BYTES: Final = 1 << 20


class _Options:
    """The words that `collector.command` gives, and the broker has checked: too few to load
    argparse for them at each start.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.root = Path("/")  # where the node's files are mounted
        self.skip: set[str] = set()  # stages to leave out
        self.is_metadata_asked = False  # of the cloud's metadata service
        self.own: Path | None = None  # a file of the operator's own facts
        rest = iter(words)
        for word in rest:
            match word:
                case "--root":
                    self.root = Path(next(rest))
                case "--skip":
                    self.skip.add(next(rest))
                case "--metadata":
                    self.is_metadata_asked = True
                case "--own":
                    self.own = Path(next(rest))
                case _:
                    sys.exit(f"error: there is no option {word!r}")


def main() -> None:
    options = _Options(sys.argv[1:])
    _settle()
    known = json.loads(sys.stdin.read(_KNOWN_BYTES) or "{}")
    try:
        for line in lines(
            options.root,
            options.skip,
            known,
            is_metadata_asked=options.is_metadata_asked,
            own_file=options.own,
        ):
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.close(1)


def lines(
    root: Path,
    skip: set[str],
    known: dict[str, str],
    *,
    is_metadata_asked: bool,
    own_file: Path | None = None,
) -> Iterator[list[str]]:
    stages = dict(STAGES)
    if own_file is not None:
        stages[OWN] = lambda root: own.collect(root, own.read_own_facts(own_file))
    if is_metadata_asked:
        stages[METADATA] = lambda _root: place.collect_metadata()
    for stage, collect in stages.items():
        if stage not in skip:
            yield ["stage", stage]
            yield from _stage_lines(stage, collect, root)
    yield ["end"]
    if EXECUTABLES not in skip:
        yield ["stage", EXECUTABLES]
        for found, identity in executables.collect(root, known):
            yield ["hash", identity, found.value]
            yield ["fact", *found]


def _stage_lines(
    stage: str, collect: Callable[[Path], Iterable[Fact]], root: Path
) -> Iterator[list[str]]:
    try:
        for found in collect(root):
            yield ["fact", *found]
    except NecroscopeError as error:
        yield ["trouble", stage, error.facts]
    except Exception as error:  # noqa: BLE001 - one stage must not cost the facts of the others
        yield ["trouble", stage, f"internal error: {error!r}"]


def _settle() -> None:
    """Die with the recorder; leave signals to it; step back behind everybody else; take no more
    memory than needed.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > _DATA_LIMIT_BYTES:
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, hard))
    give_memory_back()
    release_library_pages()


if __name__ == "__main__":
    main()
