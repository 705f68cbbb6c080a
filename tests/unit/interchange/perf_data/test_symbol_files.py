"""The ELF files that an import takes names from: read once, and only while they are the same."""

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from necroscope.interchange.perf_data import symbol_files
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.native import LIBRARY
from necroscope.symbols.image import FileImage
from necroscope.symbols.messages import BLOCK_BITS, unpack_block


def files_below(root: Path) -> SymbolFiles:
    shutil.copy(LIBRARY, root / "lib.so")
    return SymbolFiles(SymbolSearch(build_id_cache=None, root=root), is_same_machine=True)


def names_in(files: SymbolFiles, root: Path) -> set[bytes]:
    with closing(files.open("/lib.so", None)) as found:
        if found.functions is None:
            return set()
        image = FileImage(found.descriptor)
        blocks = range((root / "lib.so").stat().st_size + (1 << BLOCK_BITS) >> BLOCK_BITS)
        parts = [unpack_block(found.functions.block(block, image)) for block in blocks]
    return {name for part in parts for _, name in part}


def test_tables_of_a_file_are_read_once_and_name_it_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(*words: Any) -> Any:
        read.append(words)
        return original(*words)

    original = symbol_files.index_dynsym
    monkeypatch.setattr(symbol_files, "index_symtab", lambda *_: None)
    monkeypatch.setattr(symbol_files, "index_dynsym", counted)
    files = files_below(tmp_path)
    for _ in range(3):
        assert b"profile_learn_symbols" in names_in(files, tmp_path)
    assert len(read) == 1


def test_names_too_long_to_be_read_at_once_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_below(tmp_path)
    whole = names_in(files, tmp_path)
    monkeypatch.setattr(symbol_files, "_NAMES_BYTES", 0)
    assert names_in(files, tmp_path) == whole


def test_a_file_that_is_replaced_meanwhile_names_nothing(tmp_path: Path) -> None:
    files = files_below(tmp_path)
    assert names_in(files, tmp_path)
    content = (tmp_path / "lib.so").read_bytes()
    (tmp_path / "other.so").write_bytes(content[:4096] + content)
    os.replace(tmp_path / "other.so", tmp_path / "lib.so")
    assert names_in(files, tmp_path) == set()
