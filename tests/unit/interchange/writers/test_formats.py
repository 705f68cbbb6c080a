"""Every format of the table writes something of the drawn window, and of a window without
samples.
"""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from necroscope.interchange.writers.formats import FORMATS, SampleFormat
from necroscope.stacks.flame_tree import FlameTree


@pytest.mark.parametrize("rows", [0, 6])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_format_writes(name: str, rows: int, tables: Any, facts: Any) -> None:
    if name == "otlp":
        pytest.importorskip(
            "opentelemetry.proto.profiles", reason="opentelemetry-proto is not installed"
        )
    chosen = FORMATS[name]
    out = io.BytesIO()
    if isinstance(chosen, SampleFormat):
        chosen.write(
            SimpleNamespace(
                samples=tables.samples.slice(0, rows), stacks=tables.stacks, frames=tables.frames
            ),
            facts,
            out,
        )
        assert out.getvalue()
    else:
        chosen.write(FlameTree(*np.zeros((4, 0), dtype=np.int64), [], 0, 1, 0, []), out)


def test_suffixes_differ() -> None:
    assert len({chosen.suffix for chosen in FORMATS.values()}) == len(FORMATS)
