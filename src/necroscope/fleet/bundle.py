"""Evidence bundles: the window of an incident as one file of at most 2 MB, a recording of its own
in a zstd'd tar.

The incident's cores are there in full, the others folded as far as the size asks for. Who unpacks
one trusts nothing in it.
"""

import contextlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.segment.manifest import MANIFEST_FILE
from necroscope.segment.recording import PINS_FILE, RECORDING_FILE, SPANS_FILE, segment_start_ns
from necroscope.store.excerpt import LONGEST_NS, write_excerpt
from necroscope.store.folded_cores import FoldedCores, TooManySamples
from necroscope.store.query import Store

MOST_BYTES: Final = 2_000_000
MOST_UNPACKED_BYTES: Final = 64_000_000
# A sample takes three bytes at least.
_MOST_SAMPLES: Final = 600_000
_CODEC: Final = "zstd"
_RECORDING_FILES: Final = frozenset({RECORDING_FILE, PINS_FILE, SPANS_FILE})
_SEGMENT_FILES: Final = frozenset({MANIFEST_FILE, *(f"{table}.parquet" for table in TABLES)})
_MOST_FILES: Final = 100


def make_bundle(
    store: Store, window: Span, held: Sequence[Span], cores: frozenset[int], work: Path
) -> bytes | None:
    """The window as a bundle; `held` are the incidents in it, on `cores`. None if even the smallest
    one is too large.
    """
    extent = Span(max(window[0], window[1] - LONGEST_NS), window[1])
    for span, folded in _choices(extent, held, cores):
        with (
            contextlib.suppress(TooManySamples),
            tempfile.TemporaryDirectory(dir=work, prefix="bundle-") as directory,
        ):
            recording = Path(directory) / "recording"
            write_excerpt(
                store, *span, recording, folded=replace(folded, most_samples=_MOST_SAMPLES)
            )
            content = pack(recording)
            if len(content) <= MOST_BYTES:
                return content
    return None


def _choices(
    extent: Span, held: Sequence[Span], cores: frozenset[int]
) -> Iterator[tuple[Span, FoldedCores]]:
    """Ever less: of the other cores first, then of the time before."""
    first_ns, last_ns = (
        min([start for start, _ in held] or [extent[0]]),
        max([end for _, end in held] or [extent[1]]),
    )

    def around(before_s: int, after_s: int) -> Span:
        return Span(
            max(extent[0], first_ns - before_s * NS_PER_S),
            min(extent[1], last_ns + after_s * NS_PER_S),
        )

    yield extent, FoldedCores(cores)
    yield extent, FoldedCores(cores, around(30, 10), None, keeps_histograms=False)
    yield extent, FoldedCores(cores, around(15, 5), around(60, 15), keeps_histograms=False)
    yield around(120, 30), FoldedCores(cores, around(10, 0), around(30, 10), keeps_histograms=False)
    brief_ns = min(last_ns, first_ns + 60 * NS_PER_S)
    yield (
        Span(max(extent[0], first_ns - 60 * NS_PER_S), brief_ns),
        FoldedCores(cores, Span(0, 0), Span(first_ns, brief_ns), keeps_histograms=False),
    )


def pack(recording: Path) -> bytes:
    """The same recording always gives the same bytes."""
    sink = pa.BufferOutputStream()
    with (
        pa.CompressedOutputStream(sink, _CODEC) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in sorted(
            path
            for path in recording.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        ):
            member = tarfile.TarInfo(str(path.relative_to(recording)))
            member.size, member.mode = path.stat().st_size, 0o600
            with path.open("rb") as file:
                tar.addfile(member, file)
    return bytes(sink.getvalue())


def unpack(content: bytes, directory: Path) -> Path:
    """The recording in a bundle, into a new directory. Only files of a recording are written.

    CorruptData if it is not a bundle; OSError is the disk's, not the bundle's.
    """
    directory.mkdir(mode=0o700, parents=True)
    left_bytes = MOST_UNPACKED_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompress(content)), mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= _MOST_FILES:
                    raise CorruptData("the bundle holds too many files")
                if not 0 <= member.size <= left_bytes:
                    raise _too_large()
                left_bytes -= member.size
                _write_member(tar, member, directory)
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)
        if isinstance(error, tarfile.TarError | EOFError | ValueError):
            raise CorruptData(f"this is not a bundle: {error}") from None
        raise
    return directory


def _decompress(content: bytes) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), _CODEC) as stream:
            data: bytes = stream.read(MOST_UNPACKED_BYTES + 1)
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(f"this is not a bundle: {error}") from None
    if len(data) > MOST_UNPACKED_BYTES:
        raise _too_large()
    return data


def _too_large() -> CorruptData:
    return CorruptData(f"the bundle is larger than {MOST_UNPACKED_BYTES:,} bytes when unpacked")


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    parts = member.name.split("/")
    # A sparse file is as large as it says, whatever there is of it.
    if (
        member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE)
        or member.issparse()
        or not _is_of_recording(parts)
    ):
        raise CorruptData(
            f"the bundle holds {member.name!r:.80}, which is not a file of a recording"
        )
    file = tar.extractfile(member)
    target = directory.joinpath(*parts)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    target.write_bytes(file.read() if file is not None else b"")


def _is_of_recording(parts: list[str]) -> bool:
    if len(parts) == 1:
        return parts[0] in _RECORDING_FILES
    try:
        segment_start_ns(parts[0])
    except ValueError:
        return False
    return len(parts) == 2 and parts[1] in _SEGMENT_FILES and "." not in parts[0].partition("Z")[2]
