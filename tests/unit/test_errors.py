"""Every error carries facts, a way out and an exit code of its own."""

import pytest

from necroscope import errors
from necroscope.errors import NecroscopeError
from necroscope.lab.scenario import LabError

OWN = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, NecroscopeError)
]
ALL = [*OWN, LabError]


@pytest.mark.parametrize("error", ALL)
def test_an_error_states_facts_and_a_hint(error: type[NecroscopeError]) -> None:
    raised = error("what happened", "what to do")
    assert (str(raised), raised.facts, raised.hint) == (
        "what happened",
        "what happened",
        "what to do",
    )
    assert error("facts").hint == ""


def test_exit_codes_are_those_the_tree_shows() -> None:
    shown = {name: int(code) for name, code in _drawn()}
    assert shown == {error.__name__: error.exit_code for error in ALL if error.__name__ in shown}
    assert errors.RecordingBusy.exit_code == errors.RecordingError.exit_code


def _drawn() -> list[tuple[str, str]]:
    lines = (errors.__doc__ or "").splitlines()
    return [
        (line.split()[1], line.split()[-1])
        for line in lines
        if line.startswith(("├", "└")) and "exit" in line
    ]
