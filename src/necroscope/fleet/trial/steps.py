"""The steps of a trial on its nodes: each is written down, done within bounds, and written down
again.
"""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.fleet.trial.ledger import NodeState, Trial, TrialNode, write_trial
from necroscope.model.bounded_command import CommandEnd, run_bounded
from necroscope.model.names import clean

TIMEOUT_S: Final = 120.0
_OUTPUT_BYTES: Final = 4096

Run = Callable[[list[str]], CommandEnd]
Say = Callable[[str], None]


def run_command(words: list[str]) -> CommandEnd:
    return run_bounded(words, TIMEOUT_S, _OUTPUT_BYTES)


def command_words(template: str, node: TrialNode) -> list[str]:
    """Words first, names after: a name can never become another word or a command of a shell."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"{template!r} is not a command: {error}", "quote its words") from None
    if not words or not any("{node}" in word for word in words):
        raise UsageError(
            f"{template!r} does not say on which node",
            "write {node} where its name goes: ssh {node} systemctl disable --now x.service",
        )
    return [word.replace("{node}", node.node).replace("{cluster}", node.cluster) for word in words]


class TrialSteps:
    """`clock_ns`, `run` and `say` are injected; the ledger is the file at `path`."""

    def __init__(
        self, path: Path, trial: Trial, clock_ns: Callable[[], int], run: Run, say: Say
    ) -> None:
        self._path, self._trial = path, trial
        self._clock_ns, self._run, self._say = clock_ns, run, say

    def apply(self) -> None:
        """To every treated node that has not had it. One that does not take it is reverted at once
        and takes no part.
        """
        if self._trial.started_ns is None:
            self._trial.started_ns = self._clock_ns()
        for node in self._trial.treated:
            if node.state in (NodeState.CHOSEN, NodeState.APPLYING):
                self._apply(node)

    def revert(self) -> bool:
        """On every node that may have something of it; True if nothing is left behind."""
        for node in self._trial.nodes:
            if node.needs_undo:
                self._revert(node, NodeState.REVERTED)
        return not any(node.needs_undo for node in self._trial.nodes)

    def end(self, finding: str) -> None:
        self._trial.finding, self._trial.ended_ns = finding, self._clock_ns()
        write_trial(self._path, self._trial)

    def _apply(self, node: TrialNode) -> None:
        self._write(node, NodeState.APPLYING, "")
        end = self._do(self._trial.apply, node)
        if end is not None and end.status == 0:
            node.applied_ns = self._clock_ns()
            self._write(node, NodeState.APPLIED, "")
            return
        reason = _describe_end(end)
        self._say(
            f"{node.node}: the treatment {reason}; it is taken back, and this node takes no part"
        )
        self._revert(node, NodeState.FAILED, reason)

    def _revert(self, node: TrialNode, then: NodeState, detail: str = "") -> None:
        self._write(node, NodeState.REVERTING, detail)
        end = self._do(self._trial.revert, node)
        if end is not None and end.status == 0:
            self._write(node, then, detail)
            return
        self._write(node, NodeState.STUCK, f"{detail}; undo {_describe_end(end)}".lstrip("; "))
        self._say(f"{node.node}: the undo {_describe_end(end)}; try again with: fleet trial revert")

    def _do(self, template: str, node: TrialNode) -> CommandEnd | None:
        words = command_words(template, node)
        self._say(f"{node.node}: {shlex.join(words)}")
        try:
            return self._run(words)
        except OSError as error:
            return CommandEnd(127, str(error.strerror or error).encode())

    def _write(self, node: TrialNode, state: NodeState, detail: str) -> None:
        node.state, node.at_ns, node.detail = state, self._clock_ns(), detail
        write_trial(self._path, self._trial)


def _describe_end(end: CommandEnd | None) -> str:
    if end is None:
        return "was not run"
    said = clean(end.output[-300:]).strip()
    return end.words + (f": {said}" if said else "")
