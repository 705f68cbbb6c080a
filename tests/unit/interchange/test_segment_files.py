"""Segments of an import: sealed, or left as journals for a window that is asked for once."""

import os
from pathlib import Path

import pytest

from necroscope.errors import RecordingError
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import segment_paths
from necroscope.store.query import Store

DATA = Path(__file__).parents[2] / "data" / "interchange"
EVER = (0, 1 << 62)
WRITTEN_NS = 1_776_000_000 * 10**9
SEARCH = SymbolSearch(
    kallsyms=DATA / "kernel_symbols.txt", build_id_cache=None, root=Path("/nonexistent")
)


def an_idle_core(directory: Path) -> Path:
    """Text of `perf script`: two samples of work on core 2 within thirteen idle minutes."""
    path = directory / "idle.stacks"
    times = [20.0 * number for number in range(40)]
    path.write_text(
        "".join(
            f"swapper 0/0 [002] {at:.6f}: cpu-clock: \n"
            f"\tffffffff81000010 {function}+0x10 ([kernel.kallsyms])\n\n"
            for at in times
            for function in ["net_rx_action" if at in (40.0, 420.0) else "default_idle"]
        )
    )
    os.utime(path, ns=(WRITTEN_NS, WRITTEN_NS))
    return path


@pytest.mark.parametrize(
    "name", ["idle", "wall_clock.data", "file.script.txt", "mpstat_24h.txt", "dmesg_T.txt"]
)
def test_journals_answer_as_sealed_segments_do(tmp_path, name):
    capture = an_idle_core(tmp_path) if name == "idle" else DATA / name
    answers = []
    for in_journals in (False, True):
        directory = tmp_path / str(in_journals)
        options = Options(search=SEARCH, in_journals=in_journals)
        report = import_files([capture], directory, options)
        store = Store.open(directory)
        info = store.info()
        answers.append(
            {
                "report": (report.rows, report.from_ns, report.to_ns),
                "info": (info.gaps, info.idle_samples, info.tables, info.cpus),
                "rows": {table: store.rows(table, *EVER).to_pylist() for table in info.tables},
                "spans": [(segment.span, segment.cpus) for segment in segments(directory)],
            }
        )
    assert answers[0] == answers[1]
    assert answers[0]["info"][1] == (38 if name == "idle" else 0)


def segments(directory: Path) -> list[SegmentReader]:
    return [SegmentReader(path) for path in segment_paths(directory)]


def test_what_fails_at_the_end_of_a_journal_is_reported_as_it_was(tmp_path, monkeypatch):
    pwrite = os.pwrite

    def refuse_the_end(descriptor: int, content: bytes, offset: int) -> int:
        if b"to_ns" in bytes(content):
            raise OSError(28, "No space left on device")
        return pwrite(descriptor, content, offset)

    monkeypatch.setattr("os.pwrite", refuse_the_end)
    options = Options(search=SEARCH, in_journals=True)
    with pytest.raises(RecordingError, match="No space left"):
        import_files([DATA / "file.data"], tmp_path / "out", options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("in_journals", "writes"),
    [(False, "necroscope.segment.table_writer.TableWriter.add"), (True, "os.pwrite")],
)
def test_a_full_disk_is_reported_and_leaves_nothing_behind(
    tmp_path, monkeypatch, in_journals, writes
):
    def refuse(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writes, refuse)
    options = Options(search=SEARCH, in_journals=in_journals)
    with pytest.raises(RecordingError, match="No space left") as caught:
        import_files([DATA / "file.data"], tmp_path / "out", options)
    assert "choose one with room" in caught.value.hint
    assert os.listdir(tmp_path) == []
