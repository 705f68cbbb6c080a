"""The lookup process: the only one that touches other processes' files. Started by
`symbols.lookup`, talks on stdin and stdout.

It may hang or crash on what it reads; then the recorder kills it and starts another. So it holds
nothing but caches.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from necroscope.model.allocator import give_memory_back
from necroscope.model.library_pages import release_library_pages
from necroscope.symbols.demangle import demangle
from necroscope.symbols.messages import (
    READY,
    FrameError,
    FrameReader,
    ModuleAnswer,
    RequestKind,
    TaskDescription,
    UserRequest,
    pack,
)
from necroscope.symbols.resolver import Resolver
from necroscope.symbols.task_cgroup import find_own_roots
from necroscope.symbols.task_description import describe, read_variables

_NICE: Final = 5
_PR_SET_PDEATHSIG: Final = 1
# Of the 512 MiB that the service and the pod may take. A loaded process has 7 MiB of data (VmData),
# and to put the 165,000 symbols of librustc_driver in order takes 23 MiB more.
_DATA_LIMIT_BYTES: Final = 256 << 20

# Of CPU time for one item, well below the recorder's time-out: what takes longer is unknown, and
# the process lives on.
_CPU_S: Final = 0.5

Handler = Callable[[Any], object]


class TooLongError(Exception):
    """An item took its CPU time."""


def main() -> None:
    """The only argument is the root below which the node's /proc is mounted; nobody but the
    recorder gives it.
    """
    root = Path(sys.argv[1])
    _settle()
    requests, answers = _take_pipes()
    try:
        handlers = _handlers(Resolver(root), root)
        _send(answers, (READY, None))
        serve(requests, answers, handlers)
    except (BrokenPipeError, FrameError):
        pass
    finally:
        os.close(requests)
        os.close(answers)
    # Everything here is a cache: to take it down piece by piece, as the interpreter would, takes as
    # long as a hundred answers.
    os._exit(0)


def serve(requests: int, answers: int, handlers: dict[RequestKind, Handler]) -> None:
    """Until the recorder closes its end."""
    reader = FrameReader()
    while content := os.read(requests, 1 << 16):
        for sequence, kind, items in reader.feed(content):
            for item in items:
                _send(answers, (sequence, _answer(handlers[RequestKind(kind)], item)))


def _answer(handler: Handler, item: object) -> object:
    # One bad target must not cost the answers of the others, whatever it made fail.
    try:
        signal.setitimer(signal.ITIMER_PROF, _CPU_S)
        return handler(item)
    except MemoryError:
        # Caches may hold what has filled it, and would cost the answers of all others: the next
        # process starts without.
        raise
    except Exception:  # noqa: BLE001
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop_item(_number: int, _frame: object) -> None:
    raise TooLongError


def _handlers(resolver: Resolver, root: Path) -> dict[RequestKind, Handler]:
    own_roots = find_own_roots(root / "proc")

    def user(item: Sequence[Any]) -> object:
        answer: ModuleAnswer = resolver.user_functions(UserRequest(*item))
        return answer.build_id, [tuple(functions) for functions in answer.functions]

    def task(item: tuple[int, int, int | None]) -> object:
        description: TaskDescription = describe(root, own_roots, *item)
        return tuple(description)

    def maps(item: tuple[int]) -> object:
        found = resolver.process_maps(item[0])
        return None if found is None else ([tuple(mapping) for mapping in found[0]], found[1])

    def variables(item: tuple[int, tuple[str, ...]]) -> object:
        return tuple(read_variables(root, own_roots, *item))

    return {
        RequestKind.USER: user,
        RequestKind.JIT: lambda item: resolver.jit_symbols(*item),
        RequestKind.MAPS: maps,
        RequestKind.TASK: task,
        RequestKind.VARIABLES: variables,
        RequestKind.DEMANGLE: lambda item: [demangle(symbol.encode()) for symbol in item],
    }


def _settle() -> None:
    """Die with the recorder; leave signals to it; step back behind everybody else; take no more
    memory than needed.
    """
    libc = ctypes.CDLL(None)
    # Sent when the thread that started us ends: the recorder starts us from its only thread.
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _stop_item)
    os.nice(_NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > _DATA_LIMIT_BYTES:
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, hard))
    give_memory_back()
    release_library_pages()


def _take_pipes() -> tuple[int, int]:
    """Our own copies of stdin and stdout, which then lead nowhere: a library that prints must not
    speak to the recorder.
    """
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return requests, answers


def _send(descriptor: int, message: tuple[Any, ...]) -> None:
    content = memoryview(pack(message))
    while content:
        content = content[os.write(descriptor, content) :]


if __name__ == "__main__":
    main()
