import pytest

from necroscope.symbols import vdso


@pytest.mark.kernel
def test_vdso_of_this_kernel_knows_the_clock() -> None:
    names = vdso.load().lookup(list(range(0, 0x2000, 16)))
    if not any(names):
        pytest.skip("this kernel has no vdso")
    assert any(name is not None and "clock_gettime" in name for name in names)


def test_what_is_no_vdso_knows_nothing() -> None:
    assert vdso.Vdso(b"").lookup([0, 16]) == [None, None]
    assert vdso.Vdso(b"\x7fELF" + b"\xff" * 200).lookup([0]) == [None]
