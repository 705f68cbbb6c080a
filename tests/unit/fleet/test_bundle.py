"""Bundles: at most 2 MB, packed the same each time, and unpacked without trust."""

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from tests.drawn_recording import at, draw

from necroscope.errors import CorruptData
from necroscope.fleet import bundle
from necroscope.fleet.bundle import make_bundle, pack, unpack
from necroscope.store.query import Store

PICTURE = """
    time:  0.0   1.0   2.0   2.1   2.2
    cpu:   0     1     0     1     1
           main  main  main  main  main
           read  run   read  run   run
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(draw(tmp_path / "r", PICTURE, until=5))


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return compressed(sink.getvalue())


def compressed(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return bytes(out.getvalue())


def test_a_bundle_is_a_recording_with_the_others_folded(store: Store, tmp_path: Path) -> None:
    content = make_bundle(store, (at(0), at(5)), [(at(2), at(3))], frozenset({0}), tmp_path)
    assert content is not None
    part = Store.open(unpack(content, tmp_path / "unpacked"))
    samples = part.samples(at(0), at(5)).samples.to_pylist()
    assert [(row["cpu"], row["weight"]) for row in samples] == [(0, 1), (1, 1), (0, 1), (1, 2)]
    assert part.info().node == "node-a"
    assert not list(tmp_path.glob("bundle-*"))


def test_the_same_recording_gives_the_same_bytes(store: Store) -> None:
    assert pack(store.catalog.directory) == pack(store.catalog.directory)


def test_too_large_a_bundle_loses_other_cores_and_time_and_then_is_none(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def too_large(recording: Path) -> bytes:
        info = Store.open(recording).info()
        tried.append((info.from_ns, info.tables["samples"]))
        return bytes(bundle.MOST_BYTES + 1)

    monkeypatch.setattr(bundle, "pack", too_large)
    assert make_bundle(store, (at(0), at(5)), [(at(2), at(2.15))], frozenset({0}), tmp_path) is None
    assert [rows for _, rows in tried] == [4, 4, 4, 4, 2]
    assert not list(tmp_path.glob("bundle-*"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../evil", tarfile.REGTYPE),
        ("/etc/evil", tarfile.REGTYPE),
        ("evil", tarfile.REGTYPE),
        ("2026-11-15T22-03-13.123Z/evil", tarfile.REGTYPE),
        ("2026-11-15T22-03-13.123Z.live/journal", tarfile.REGTYPE),
        ("2026-11-15T22-03-13.123Z/../samples.parquet", tarfile.REGTYPE),
        ("recording.json", tarfile.SYMTYPE),
        ("recording.json", tarfile.LNKTYPE),
        ("recording.json", tarfile.CHRTYPE),
        ("recording.json", tarfile.FIFOTYPE),
        ("recording.json", tarfile.GNUTYPE_SPARSE),
        ("recording.json", tarfile.CONTTYPE),
    ],
)
def test_what_is_no_file_of_a_recording_is_not_written(
    tmp_path: Path, name: str, kind: bytes
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(CorruptData, match="not a file of a recording"):
        unpack(tar_of((member, b"x")), tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_a_bomb_is_refused_by_its_size(tmp_path: Path) -> None:
    bomb = compressed(bytes(bundle.MOST_UNPACKED_BYTES + 2))
    assert len(bomb) < 100_000
    with pytest.raises(CorruptData, match="larger than"):
        unpack(bomb, tmp_path / "unpacked")


def test_very_many_files_are_refused(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo("recording.json"), b"x") for _ in range(200)]
    with pytest.raises(CorruptData, match="too many files"):
        unpack(tar_of(*members), tmp_path / "unpacked")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", compressed(b""), compressed(b"garbage" * 1000)]
)
def test_garbage_is_an_error_or_an_empty_recording(tmp_path: Path, content: bytes) -> None:
    try:
        directory = unpack(content, tmp_path / "unpacked")
    except CorruptData:
        assert not (tmp_path / "unpacked").exists()
    else:
        assert list(directory.iterdir()) == []


def test_a_cut_off_bundle_is_never_an_exception_of_another_kind(
    store: Store, tmp_path: Path
) -> None:
    whole = pack(store.catalog.directory)
    for number, size in enumerate(range(0, len(whole), max(1, len(whole) // 23))):
        with pytest.raises(CorruptData):
            unpack(whole[:size], tmp_path / f"cut{number}")


def pax_of(name: str, content: bytes, **headers: str) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo(name)
        member.size, member.pax_headers = len(content), headers
        tar.addfile(member, io.BytesIO(content))
    return compressed(sink.getvalue())


def test_a_file_with_holes_is_not_as_large_as_it_says(tmp_path: Path) -> None:
    holes = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(40 << 20)}
    with pytest.raises(CorruptData, match="not a file of a recording"):
        unpack(pax_of("recording.json", b"", **holes), tmp_path / "unpacked")


@pytest.mark.parametrize("size", ["-512", str(1 << 40)])
def test_a_size_that_no_file_can_have_is_refused(tmp_path: Path, size: str) -> None:
    with pytest.raises(CorruptData):
        unpack(pax_of("recording.json", b"x", size=size), tmp_path / "unpacked")
