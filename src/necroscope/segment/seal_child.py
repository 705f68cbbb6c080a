"""The child that seals a segment at low priority, on one core, and goes away.

`python -m necroscope.segment.seal_child LIVE_DIR`
"""

import os
import sys

if __name__ == "__main__":
    from necroscope.model.unwanted_modules import leave_out

    leave_out("numpy", "pandas")
    # Measured: malloc instead of mimalloc saves 40 MB on the 96-core segment.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    # Before all else is loaded: the pages that linking Arrow touches are the most that the child
    # ever has.
    import pyarrow._parquet

    from necroscope.model.library_pages import release_library_pages

    release_library_pages()

from pathlib import Path

import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.segment.seal_writer import seal


def main(arguments: list[str]) -> int:
    """Exit code 0: sealed, or there was nothing to do."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m necroscope.segment.seal_child LIVE_DIR\n")
        return 2
    try:
        seal(Path(arguments[0]).absolute())
    except (NecroscopeError, OSError, ValueError, pa.ArrowException) as error:
        sys.stderr.write(f"error: cannot seal {arguments[0]}: {error}\n")
        return error.exit_code if isinstance(error, NecroscopeError) else 1
    return 0


def lower_priority() -> None:
    """SCHED_BATCH and nice 19 rather than SCHED_IDLE, which on a saturated node would never let the
    seal end.
    """
    # Not os.nice, which adds: the recorder, whose child this is, runs at -10 where it may.
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


if __name__ == "__main__":
    lower_priority()
    exit_code = main(sys.argv[1:])
    # All files are closed and durable. Taking down the interpreter with Arrow in it would cost a
    # tenth of the seal.
    sys.stderr.flush()
    os._exit(exit_code)
