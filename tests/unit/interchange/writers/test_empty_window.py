"""Every writer of samples writes something of the drawn window, and of a window without samples."""

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope


@pytest.mark.parametrize("rows", [0, 6])
@pytest.mark.parametrize("write", [write_firefox, write_otlp, write_pprof, write_speedscope])
def test_the_format_writes(write: Callable[..., None], rows: int, tables: Any, facts: Any) -> None:
    if write is write_otlp:
        pytest.importorskip(
            "opentelemetry.proto.profiles", reason="opentelemetry-proto is not installed"
        )
    out = io.BytesIO()
    samples = tables.samples.slice(0, rows)
    write(SimpleNamespace(samples=samples, stacks=tables.stacks, frames=tables.frames), facts, out)
    assert out.getvalue()
