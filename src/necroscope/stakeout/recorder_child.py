"""The recorder of an experiment, as a user would start it: a process of its own, from the same
interpreter.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from necroscope.errors import ExperimentFailed, NecroscopeError
from necroscope.store.query import Store

_START_S: Final = 120.0
_SEAL_S: Final = 120.0


class RecorderChild:
    """`necroscope record` under way."""

    def __init__(
        self, directory: Path, output: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._output = output
        # In its own session: Ctrl-C is for the experiment, which then ends the recorder.
        with output.open("ab") as said:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "necroscope",
                    "record",
                    "--dir",
                    str(directory),
                    "--quiet",
                    "--free-floor",
                    "1",
                ],
                env=os.environ | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait_until_it_records(self) -> None:
        deadline = time.monotonic() + _START_S
        while not self._has_rows():
            if self._process.poll() is not None:
                raise ExperimentFailed(
                    f"the recorder ended with {self._process.returncode}: {self._read_output()}"
                )
            if time.monotonic() > deadline:
                raise ExperimentFailed(
                    f"the recorder recorded nothing within {_START_S:g} s: {self._read_output()}"
                )
            time.sleep(0.2)

    def stop(self) -> None:
        """Tell it to end, and wait until its last segment is sealed."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self._process.wait(_SEAL_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ExperimentFailed(
                f"the recorder did not seal within {_SEAL_S:g} s: {self._read_output()}"
            ) from None
        if code:
            raise ExperimentFailed(f"the recorder ended with {code}: {self._read_output()}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _has_rows(self) -> bool:
        with contextlib.suppress(NecroscopeError):
            return bool(Store.open(self._directory).info().tables.get("cores"))
        return False

    def _read_output(self) -> str:
        return self._output.read_text(errors="replace")[-600:].strip()
