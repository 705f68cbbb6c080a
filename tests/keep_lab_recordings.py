"""Keeps one seed of `necroscope lab score` as test data: each recording cut to its incident, the
machine's names taken out of it.

`python -m tests.keep_lab_recordings SCORE_DIR SEED OLD=NEW... -PROGRAM...` writes those recordings to
tests/data/lab. Waits of a -PROGRAM, which ran beside the scenario, are left out.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from necroscope.lab.label import LABEL_FILE, read_label
from necroscope.model.units import NS_PER_S, parse_moment_ns
from necroscope.store.excerpt import write_excerpt
from necroscope.store.query import Store

LAB = Path(__file__).parent / "data" / "lab"
# What is usual is learnt from before; a stall may be reported a little after it ended.
BEFORE_NS, AFTER_NS = 15 * NS_PER_S, 3 * NS_PER_S


class OfTheScenario(Store):
    """The packages and settings of one machine say nothing about its incidents, and are most of
    such a recording. What other programs wait for there is none of the scenario's.
    """

    others: frozenset[str] = frozenset()

    def rows(self, table: str, *arguments: Any, **words: Any) -> pa.Table:
        found = super().rows(table, *arguments, **words)
        if table == "waits" and self.others:
            names = found.column("comm").to_pylist()
            return found.filter(pa.array([name not in self.others for name in names]))
        return found.slice(0, 0) if table == "facts" else found


def keep(
    recording: Path, directory: Path, renames: dict[str, str], others: frozenset[str] = frozenset()
) -> None:
    label = read_label(recording)
    from_ns, to_ns = (parse_moment_ns(label[key], 0) for key in ("from", "to"))
    store = OfTheScenario.open(recording)
    store.others = others
    write_excerpt(store, from_ns - BEFORE_NS, to_ns + AFTER_NS, directory, renames)
    text = (recording / LABEL_FILE).read_text("utf-8")
    for old, new in renames.items():
        text = text.replace(old, new)
    (directory / LABEL_FILE).write_text(text, "utf-8")


def main(score: str, seed: str, *words: str) -> None:
    renames = dict(word.split("=", 1) for word in words if "=" in word)
    others = frozenset(word.removeprefix("-") for word in words if word.startswith("-"))
    for recording in sorted(Path(score).glob(f"*-{seed}")):
        directory = LAB / recording.name.removesuffix(f"-{seed}")
        shutil.rmtree(directory, ignore_errors=True)
        keep(recording, directory, renames, others)


if __name__ == "__main__":
    main(*sys.argv[1:])
