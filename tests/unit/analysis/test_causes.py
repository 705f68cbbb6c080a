"""What holds for every cause: its file tells its story."""

import inspect

import pytest

from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)
def test_the_file_of_a_cause_opens_with_its_story(cause: Cause) -> None:
    module = inspect.getmodule(cause.assess)
    assert module is not None
    story = " ".join((module.__doc__ or "").split())
    assert [
        word for word in ("Signature:", "Confirming signal:", "Source:") if word not in story
    ] == []
    assert module.__name__.rpartition(".")[2] == cause.slug.replace("-", "_")
