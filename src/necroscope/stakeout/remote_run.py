"""One run of a job under a stakeout on another node: started through a command template (ssh by
default), its summary read, its catches brought home.
"""

import json
import shlex
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData, NecroscopeError, UsageError
from necroscope.model.names import clean

NODE, COMMAND = "{node}", "{command}"
OVER_SSH: Final = f"ssh -o BatchMode=yes {NODE} {COMMAND}"
_SUMMARY_BYTES: Final = 64 << 20
# A catch is three minutes of a recording.
_CATCHES_BYTES: Final = 1 << 30
_SHORT_S: Final = 300.0
# Of `necroscope stakeout`: nothing happened, or what was waited for did.
_DONE: Final = frozenset({0, 1})


class RemoteError(NecroscopeError):
    """The node was not reached, or no stakeout could be run there: the run does not count."""


@dataclass(frozen=True, slots=True)
class Remote:
    """`over` runs `{command}`, one word for a shell, on `{node}`; `program` is necroscope there;
    `place` a directory there that may be made and removed.
    """

    over: str
    program: str = "necroscope"
    place: str = "/var/tmp"

    def check(self) -> None:
        words = _split(self.over)
        if not any(COMMAND in word for word in words):
            raise UsageError(
                f"{self.over!r} does not say where the command goes", f"for example: {OVER_SSH}"
            )

    def run(self, node: str, name: str, until: Sequence[str], job: Sequence[str]) -> dict[str, Any]:
        """The summary of one run, as `stakeout --json` has it, without the report's details."""
        directory = f"{self.place}/necroscope-{name}"
        waits = [word for kind in until for word in ("--until", kind)]
        words = [self.program, "stakeout", "--dir", directory, "--repeat", "1", *waits]
        result = self._ask(node, [*words, "--json", "--", *job], None)
        if result.returncode not in _DONE:
            said = clean(result.stderr[-300:]).strip() or f"it ended with {result.returncode}"
            raise RemoteError(f"{clean(node)}: {said}")
        try:
            summary = json.loads(result.stdout[:_SUMMARY_BYTES])
            if not isinstance(summary["runs"], list) or not isinstance(summary["caught"], list):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise RemoteError(f"{clean(node)}: its answer is not that of a stakeout") from None
        return dict(summary)

    def bring_home(self, node: str, name: str, into: Path) -> None:
        """Catches, the run's output and the summary; nothing outside of `into` is written."""
        directory = f"{self.place}/necroscope-{name}"
        parts = "catches runs stakeout.json"
        script = f"cd {shlex.quote(directory)} && tar -cf - $(ls -d {parts} 2>/dev/null)"
        result = self._ask_shell(node, script, _SHORT_S)
        if result.returncode or len(result.stdout) > _CATCHES_BYTES:
            raise RemoteError(f"{clean(node)}: what was caught could not be fetched")
        into.mkdir(parents=True, exist_ok=True)
        archive = into / ".fetched.tar"
        archive.write_bytes(result.stdout)
        try:
            with tarfile.open(archive) as file:
                file.extractall(into, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise CorruptData(f"{clean(node)} sent a broken archive: {error}") from None
        finally:
            archive.unlink()

    def forget(self, node: str, name: str) -> None:
        self._ask_shell(node, f"rm -rf {shlex.quote(f'{self.place}/necroscope-{name}')}", _SHORT_S)

    def _ask(
        self, node: str, words: Sequence[str], timeout_s: float | None
    ) -> subprocess.CompletedProcess[bytes]:
        return self._ask_shell(node, shlex.join(words), timeout_s)

    def _ask_shell(
        self, node: str, script: str, timeout_s: float | None
    ) -> subprocess.CompletedProcess[bytes]:
        words = [word.replace(NODE, node).replace(COMMAND, script) for word in _split(self.over)]
        try:
            return subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=timeout_s,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RemoteError(f"{clean(node)}: {clean(str(error), 300)}") from None


def _split(template: str) -> list[str]:
    try:
        return shlex.split(template)
    except ValueError as error:
        raise UsageError(f"{template!r} is not a command: {error}", OVER_SSH) from None
