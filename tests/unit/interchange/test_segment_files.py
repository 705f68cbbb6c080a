"""Segments of an import: sealed, or left as journals for a window that is asked for once."""

import os
from pathlib import Path

import pytest

from necroscope.errors import RecordingError
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.store.query import Store

DATA = Path(__file__).parents[2] / "data" / "interchange"
EVER = (0, 1 << 62)
SEARCH = SymbolSearch(
    kallsyms=DATA / "kernel_symbols.txt", build_id_cache=None, root=Path("/nonexistent")
)


def an_idle_core(directory: Path) -> Path:
    """Text of `perf script`: two samples of an idle core and one of its work."""
    path = directory / "idle.stacks"
    path.write_text(
        "".join(
            f"swapper 0 [000] {at:.6f}: cpu-clock: \n\tffffffff81000010 {function}+0x10 ([kernel.kallsyms])\n\n"
            for at, function in (
                (1.0, "default_idle"),
                (1.5, "net_rx_action"),
                (2.0, "default_idle"),
            )
        )
    )
    return path


@pytest.mark.parametrize(
    "name", ["idle", "wall_clock.data", "file.script.txt", "mpstat_24h.txt", "dmesg_T.txt"]
)
def test_journals_answer_as_sealed_segments_do(tmp_path, name):
    capture = an_idle_core(tmp_path) if name == "idle" else DATA / name
    stores = []
    for in_journals in (False, True):
        directory = tmp_path / str(in_journals)
        options = Options(search=SEARCH, in_journals=in_journals)
        report = import_files([capture], directory, options)
        store = Store.open(directory)
        info = store.info()
        rows = {table: store.rows(table, *EVER).to_pylist() for table in info.tables}
        stores.append((report.rows, info.gaps, info.idle_samples, info.tables, rows))
        stores[-1] += ((info.from_ns, info.to_ns),)
    assert stores[0] == stores[1]
    assert stores[0][2] == (2 if name == "idle" else 0)


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
