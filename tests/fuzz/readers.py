"""Feeds the readers of other tools' files what atheris makes of our captures: run by `scripts/fuzz
READER [SECONDS]`.

Nothing but one of our own errors may come out; libFuzzer ends it on any other, on a run of more
than 20 s and on 1 GiB of memory.
"""

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["necroscope"]):
    from necroscope.errors import NecroscopeError
    from necroscope.interchange.capture import Capture, ImportPlan
    from necroscope.interchange.detect import FileKind, detect
    from necroscope.interchange.dmesg import read_dmesg
    from necroscope.interchange.folded import open_folded
    from necroscope.interchange.import_profile import ImportProfile
    from necroscope.interchange.imported_tables import read_tables
    from necroscope.interchange.importer import Options, import_files
    from necroscope.interchange.inputs import Input
    from necroscope.interchange.mpstat import read_mpstat
    from necroscope.interchange.perf_data.reader import open_perf_data
    from necroscope.interchange.perf_script import open_perf_script
    from necroscope.interchange.rolling import parse_name
    from necroscope.interchange.sar import read_sar
    from necroscope.interchange.symbol_search import SymbolSearch

    sys.path.append(str(Path(__file__).parents[2]))
    from tests.fuzz.formats import FORMATS, feed

CAPTURES = Path(__file__).parents[1] / "data" / "interchange"
# No symbols: a capture names files, and those of this machine are not what is tried here.
NOWHERE = SymbolSearch(build_id_cache=None, root=Path("/nonexistent"))


def drain(capture: Capture) -> None:
    profile = ImportProfile()
    for batch in capture.batches(ImportPlan(profile)):
        profile.names.fetch().named()
        assert all(0 <= stack < profile.core.view.node_count for stack in batch.stack)
    profile.close()


def whole_import(path: Path) -> None:
    """Also the segments, dating and idle samples."""
    directory = path.with_suffix(".recording")
    try:
        import_files([path], directory, Options(search=NOWHERE))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def read_proc(path: Path) -> object:
    """As copies of /proc files, whatever they are."""
    return read_tables([Input(path, FileKind.PROC, parse_name(path), 1, 1)], 0, (0, 1 << 62))


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "perf_data": (lambda path: drain(open_perf_data(path, NOWHERE)), "*.data"),
    "perf_script": (lambda path: drain(open_perf_script(path)), "*.script.txt"),
    "folded": (lambda path: drain(open_folded(path)), "*.script.txt"),
    "dmesg": (lambda path: list(read_dmesg(path, 2026, 0)), "dmesg*.txt"),
    "mpstat": (lambda path: read_mpstat(path, 0), "mpstat*"),
    "sar": (read_sar, "sar*"),
    "proc": (read_proc, "proc_*.txt"),
    "detect": (detect, "*"),
    "import": (whole_import, "*"),
}


def main() -> None:
    """The corpus grows in the directory that is given; ours is only read. libFuzzer itself ends the
    process.
    """
    name, corpus, *words = sys.argv[1:]
    if name in FORMATS:
        kept = str(CAPTURES.parent / "fuzz" / name)
        atheris.Setup([sys.argv[0], corpus, *words, kept], lambda content: feed(name, content))
        atheris.Fuzz()
    read, seeds = READERS[name]
    seeding, file = Path(f"{corpus}-seeds"), Path(f"{corpus}-input")
    seeding.mkdir(exist_ok=True)
    for seed in CAPTURES.glob(seeds):
        if seed.is_file():
            shutil.copy(seed, seeding)

    def one_input(content: bytes) -> None:
        file.write_bytes(content)
        with contextlib.suppress(NecroscopeError):
            read(file)

    atheris.Setup([sys.argv[0], corpus, *words, str(seeding)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
