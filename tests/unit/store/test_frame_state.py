"""What a core was doing at a sample, in words."""

from necroscope.store.choices import State


def test_every_state_has_a_label():
    assert [state.label for state in State] == [
        "kernel",
        "user",
        "interrupt on an idle core",
        "idle",
    ]
