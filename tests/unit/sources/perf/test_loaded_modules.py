"""Whether the kernel's modules changed, told by name and address."""

from pathlib import Path

import pytest

from necroscope.sources.perf.sampler import LoadedModules

ENA = "ena 147456 0 - Live 0xffffffffc0a00000 (OE)\n"
NAT = "nf_nat 57344 2 nft_chain_nat,xt_nat, Live 0xffffffffc0b00000\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "modules").write_text(ENA + NAT)
    return tmp_path / "modules"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENA + NAT, False),
        (NAT.replace("57344 2", "57344 7") + ENA, False),
        (ENA, True),
        (ENA + NAT + NAT.replace("nf_nat", "nf_tables"), True),
        (ENA + NAT.replace("c0b0", "c0c0"), True),
    ],
    ids=["the same", "other users and order", "one went", "one came", "one came back elsewhere"],
)
def test_they_changed_if_one_came_or_went(file: Path, text: str, expected: bool) -> None:
    modules = LoadedModules(file.parent)
    file.write_text(text)
    assert modules.have_changed() is expected
    assert not modules.have_changed()


def test_a_kernel_without_modules_has_the_same_for_ever(tmp_path: Path) -> None:
    assert not LoadedModules(tmp_path).have_changed()
