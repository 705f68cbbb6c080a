"""The analysis of a stretch in a process of its own: what it needs of memory is the node's again
when it ends.

`python -m necroscope.outlets.notify.judge DIRECTORY FROM_NS` prints a judgement as JSON.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from necroscope.errors import NecroscopeError
from necroscope.model.definitions import LEFT_BEHIND_NS
from necroscope.model.names import clean
from necroscope.model.span import Span
from necroscope.outlets.notify.judged import Judged, Judgement, bounded

_TIMEOUT_S: Final = 300
_NICE: Final = 10
_PR_SET_PDEATHSIG: Final = 1


def judge(directory: Path, from_ns: int) -> Judgement:
    """Waits for it; NecroscopeError if it fails or takes too long."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "necroscope.outlets.notify.judge",
        str(directory),
        str(from_ns),
    ]
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NecroscopeError(
            f"the analysis took longer than {_TIMEOUT_S} s and was ended"
        ) from None
    if ran.returncode != 0:
        lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NecroscopeError(
            "the analysis failed:"
            f" {clean(lines[-1] if lines else f'exit code {ran.returncode}', 500)}"
        )
    answer = json.loads(ran.stdout)
    incidents = tuple(Judged.from_json(one) for one in answer["incidents"])
    return Judgement(answer["end_ns"], answer["is_live"], answer["labels"], incidents)


def judgement_as_json(directory: Path, from_ns: int, now_ns: int) -> dict[str, Any]:
    """What the child prints. Imports what is heavy here: the parent lives without it."""
    from necroscope.analysis.engine import diagnose  # noqa: PLC0415
    from necroscope.store.query import Store  # noqa: PLC0415

    store = Store.open(directory)
    segments = store.catalog.segments
    end_ns = max((segment.to_ns for segment in segments), default=0)
    is_live = any(segment.is_live for segment in segments) and now_ns - end_ns < LEFT_BEHIND_NS
    incidents: list[dict[str, Any]] = []
    if end_ns >= from_ns:
        report = diagnose(store, span=Span(from_ns, end_ns + 1))
        for one in report.wrong:
            verdict = one.verdict
            told = one.as_json() | {"verdict": verdict.as_json() | {"title": verdict.title}}
            place = (one.id, report.node, one.from_ns, one.to_ns, one.core, one.mode)
            judged = Judged(
                *place,
                verdict.cause,
                round(verdict.confidence, 2),
                verdict.title,
                verdict.summary,
                bounded(told),
            )
            incidents.append(judged.as_json())
    labels = store.catalog.identity.labels if store.catalog.identity else {}
    return {"end_ns": end_ns, "is_live": is_live, "labels": labels, "incidents": incidents}


def _main(directory: str, from_ns: str) -> None:
    # Whoever asked may be ended meanwhile; then nobody reads the answer.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.nice(_NICE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        json.dump(judgement_as_json(Path(directory), int(from_ns), time.time_ns()), sys.stdout)
    except NecroscopeError as error:
        sys.exit(error.facts)


if __name__ == "__main__":
    _main(*sys.argv[1:])
