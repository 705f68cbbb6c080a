"""What fuzzing found worth keeping, fed again: nothing but expected errors, and no hang."""

from pathlib import Path

import pytest
from tests.fuzz.formats import FORMATS, feed

CORPORA = Path(__file__).parents[1] / "data/fuzz"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FORMATS)
def test_kept_inputs_do_no_harm(name: str) -> None:
    kept = sorted((CORPORA / name).iterdir())
    assert kept
    for path in kept:
        feed(name, path.read_bytes())
