import pytest
from tests.whole_symbol_table import functions_between

from necroscope.symbols import vdso


@pytest.mark.kernel
def test_vdso_of_this_kernel_knows_the_clock() -> None:
    found = vdso.load()
    if found.elf is None:
        pytest.skip("this kernel has no vdso")
    (table,) = found.tables
    names = [
        name
        for _, name in functions_between(table, 0, found.image.size_bytes, found.image)
        if name is not None
    ]
    assert any(b"clock_gettime" in name for name in names)


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + b"\xff" * 200], ids=["nothing", "nonsense"])
def test_what_is_no_vdso_knows_nothing(content: bytes) -> None:
    found = vdso.Vdso(content)
    assert (found.elf, found.tables) == (None, [])
