"""Every format of the table writes something of the drawn window, and of a window without samples."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from necroscope.interchange.writers.formats import FORMATS, SampleFormat


@pytest.mark.parametrize("rows", [0, 6])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_format_writes(name: str, rows: int, tables: Any, facts: Any) -> None:
    if name == "otlp":
        pytest.importorskip("opentelemetry.proto.profiles", reason="opentelemetry-proto is not installed")
    chosen = FORMATS[name]
    out = io.BytesIO()
    if isinstance(chosen, SampleFormat):
        chosen.write(
            SimpleNamespace(samples=tables.samples.slice(0, rows), stacks=tables.stacks, frames=tables.frames), facts, out
        )
        assert out.getvalue()
    else:
        chosen.write(SimpleNamespace(parent=np.empty(0), frame=np.empty(0), self_weight=np.empty(0), frames=[]), out)


def test_suffixes_differ() -> None:
    assert len({chosen.suffix for chosen in FORMATS.values()}) == len(FORMATS)
