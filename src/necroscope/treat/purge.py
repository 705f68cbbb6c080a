"""Purges dead memory cgroups without a reboot: of each file that pins them, exactly the pages that
they are charged for. The cache of others stays.
"""

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from necroscope.model.units import format_duration
from necroscope.treat.act_ledger import TreatmentAct
from necroscope.treat.bites import Bites, quiet_core
from necroscope.treat.dead_pages import PinningFile, Pins, dead_count
from necroscope.treat.mapped_pages import PAGE_BYTES, runs
from necroscope.treat.rehome import (
    SEGMENT_PAGES,
    TEMPORARY_FILE,
    charged_to_root,
    rehome_file,
    rehome_segment,
)

_SHOWN_FILES: Final = 20
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOATIME
# The kernel releases a cgroup some time after its last page is gone.
_RELEASE_S: Final = 20.0
_PRIORITY: Final = 19
_WORDS: Final = {
    "page cache": "drop these pages from the cache (dirty ones are written first)",
    "tmpfs": "copy the file within its tmpfs; the copy takes its name, content stays",
    "shared memory": "empty and fill again page by page, each bite saved on disk before",
}


@dataclass(slots=True)
class PurgeStep:
    """`saved` is where pages of shared memory are kept while they are under way."""

    pins: Pins
    root: Path
    saved: Path
    bites: Bites = field(default_factory=Bites)
    left: Counter[str] = field(default_factory=Counter)
    dead_after: int | None = None

    def describe(self) -> list[str]:
        pins = self.pins
        dead = f"{pins.dead:,} dead memory cgroups" if pins.dead is not None else "dead cgroups"
        lines = [
            (
                f"purge {dead}: {pins.explained:,} of the {pins.pages:,} pages that they are"
                f" charged for were found in {len(pins.found):,} files"
            )
        ]
        lines += [
            f"  below {each.path}: "
            + ", ".join(f"{n:,} of {k.value}" for k, n in each.pages.items())
            for each in pins.ancestors
        ]
        for kind, own in self._by_kind().items():
            lines.append(f"  {kind}, {len(own):,} files: {_WORDS[kind]}")
            lines += [f"    {file.name}: {file.pages:,} pages" for file in own[:_SHOWN_FILES]]
            if len(own) > _SHOWN_FILES:
                lines.append(f"    and {len(own) - _SHOWN_FILES:,} more, see --json")
        if pins.is_cut:
            lines.append(
                "  not all files were looked at in time: --look-in, or a longer --look-for"
            )
        return [*lines, f"  {self._place()}"]

    def as_json(self) -> dict[str, Any]:
        pins = self.pins
        return {
            "kind": "purge",
            "dead": pins.dead,
            "dead_after": self.dead_after,
            "pages": pins.pages,
            "explained": pins.explained,
            "is_cut": pins.is_cut,
            "ancestors": [{"path": each.path, "pages": each.total} for each in pins.ancestors],
            "files": [{"name": f.name, "kind": f.kind, "pages": f.pages} for f in pins.found],
            "left": dict(self.left),
            "longest_hold_ns": self.bites.longest_ns,
            "bites": self.bites.count,
        }

    def apply(self, note: Callable[[TreatmentAct], None], say: Callable[[str], None]) -> None:
        core = quiet_core(self.root)
        if core is not None:
            os.sched_setaffinity(0, {core})
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
        folders = {each.inode: each.path for each in self.pins.ancestors}
        name = f".necroscope-{secrets.token_hex(8)}"
        noted: set[bytes] = set()
        self._note_segments(note)
        for place, file in enumerate(self.pins.found, 1):
            if file.kind == "tmpfs":
                self._note_folder(file, name, noted, note)
            reason = self._free(file, name, folders[file.ancestor])
            if reason is not None:
                self.left[f"{file.kind}: {reason}"] += 1
            if place % 1000 == 0:
                say(f"{place:,} of {len(self.pins.found):,} files")
        self.dead_after = self._wait_for_release()
        say(self.outcome())

    def outcome(self) -> str:
        text = f"{self.pins.dead:,} dead memory cgroups before, {self.dead_after or 0:,} now"
        longest = format_duration(self.bites.longest_ns)
        left = "".join(f"; left {count:,}: {why}" for why, count in self.left.most_common(5))
        return f"{text}; no core was held for longer than {longest} at a time{left}"

    def _by_kind(self) -> dict[str, list[PinningFile]]:
        found: dict[str, list[PinningFile]] = {}
        for file in sorted(self.pins.found, key=lambda file: -file.pages):
            found.setdefault(file.kind, []).append(file)
        return found

    def _place(self) -> str:
        core = quiet_core(self.root)
        budget = f"no core is held for longer than {format_duration(self.bites.hold_ns)} at a time"
        if core is None:
            return f"{budget}; every core takes interrupts of network queues, so any is used"
        return f"{budget}; on core {core}, which takes no interrupt of a network queue"

    def _note_segments(self, note: Callable[[TreatmentAct], None]) -> None:
        if any(file.segment is not None for file in self.pins.found):
            note(TreatmentAct(SEGMENT_PAGES, {"saved": str(self.saved)}))

    def _note_folder(
        self,
        file: PinningFile,
        name: str,
        noted: set[bytes],
        note: Callable[[TreatmentAct], None],
    ) -> None:
        folder = os.path.dirname(file.path)
        if folder not in noted:
            noted.add(folder)
            note(TreatmentAct(TEMPORARY_FILE, {"folder": os.fsdecode(folder), "name": name}))

    def _free(self, file: PinningFile, name: str, ancestor: str) -> str | None:
        """None if it is done, else why it was left: one file costs no other."""
        try:
            if file.segment is not None:
                with charged_to_root(ancestor):
                    return rehome_segment(file, self.saved, self.root, self.bites)
            if file.is_memory:
                with charged_to_root(ancestor):
                    return rehome_file(file, name, self.bites)
            return self._drop(file)
        except OSError as error:
            return error.strerror or str(error)

    def _drop(self, file: PinningFile) -> str | None:
        descriptor = os.open(file.path, _OPEN)
        try:
            if file.is_dirty:
                os.fdatasync(descriptor)
            for first, end in runs(file.places, longest=self.bites.pages):
                offset, length = first * PAGE_BYTES, (end - first) * PAGE_BYTES
                advice = (descriptor, offset, length, os.POSIX_FADV_DONTNEED)
                self.bites.take(os.posix_fadvise, *advice)
        finally:
            os.close(descriptor)
        return "pages are locked into memory" if file.held else None

    def _wait_for_release(self) -> int | None:
        deadline = time.monotonic() + _RELEASE_S
        before = dead_count(self.root)
        while time.monotonic() < deadline:
            time.sleep(0.5)
            now = dead_count(self.root)
            if now == before:
                return now
            before = now
        return before
