"""What a program said last, from the end of its own log: the exception it raised, or the line of a
launcher, of NCCL or of the kernel that ended it.

Only such lines are kept, because a log may hold anything. A user writes this file: the words are
his claim about his own job, and nothing else is concluded from them.

    [rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:47
"""

import re
from typing import Final, NamedTuple

from necroscope.model.names import clean

TAIL_BYTES: Final = 32 * 1024
_WORDS_LIMIT: Final = 400
# torch prefixes each line of a rank's traceback, Ray those of a worker, containerd every line.
_PREFIX: Final = re.compile(
    rb"^(?:\d{4}-\d\d-\d\dT\S{9,30} std(?:out|err) [FP] )?"
    rb"(?:(?:\[(?:default|rank)?\d+\]:|\((?:[\w.:]+ )?pid=\d+[^)]*\)) ?)?"
)
_TRACEBACK: Final = b"Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(rb"[A-Za-z_][\w.]{2,80}(?:\(\w{1,80}\))?(?:: .*)?")
# What a task or an actor raised is raised again in the driver, with its traceback below
# (python/ray/exceptions.py): the exception itself comes last.
_RAY_TASK: Final = re.compile(rb"(?:ray\.exceptions\.)?RayTaskError\(")
# The first is the one that explains most.
_TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rb"CANCELLED AT \S+ DUE TO [A-Z ]+",
        rb"[Oo]om[-_ ]kill|Out Of Memory",
        rb"Watchdog caught collective operation timeout: .*",
        rb"Fatal Python error: .*",
        rb"Segmentation fault|Bus error|Illegal instruction",
    )
)
_ADDRESS: Final = re.compile(
    r"\[?((?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})\]?:\d{1,5}\b"
)


class LastWords(NamedTuple):
    """`peer` is the address of another that they name."""

    text: str
    peer: str | None


def last_words(tail: bytes) -> LastWords | None:
    """None if the end of the log holds nothing of the kind."""
    lines = [_PREFIX.sub(b"", line) for line in tail[-TAIL_BYTES:].split(b"\n")]
    for pattern in _TELLING:
        for line in reversed(lines):
            if pattern.search(line):
                return _words(line)
    raised = _exception(lines)
    return None if raised is None else _words(raised)


def _exception(lines: list[bytes]) -> bytes | None:
    """The line that ends the last traceback: the first below it that is not indented."""
    starts = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if not starts:
        return None
    flush = [line for line in lines[starts[-1] + 1 :] if line and not line[:1].isspace()]
    if not flush or not _EXCEPTION.fullmatch(flush[0].rstrip()):
        return None
    if _RAY_TASK.match(flush[0]) and len(flush) > 1 and _EXCEPTION.fullmatch(flush[1].rstrip()):
        return flush[1]
    return flush[0]


def _words(line: bytes) -> LastWords:
    text = clean(line.strip(), _WORDS_LIMIT)
    peer = _ADDRESS.search(text)
    return LastWords(text, peer[1] if peer else None)
