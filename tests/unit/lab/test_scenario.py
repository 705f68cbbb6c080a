"""What a scenario may say about its impact."""

import pytest

from necroscope.lab.scenario import ImpactMissing, reached


def test_an_impact_within_its_bounds_is_the_labels_value() -> None:
    assert reached("share", 0.987654321, at_least=0.8) == 0.9877


@pytest.mark.parametrize("bounds", [{"at_least": 0.8}, {"at_most": 0.1}])
def test_an_impact_out_of_its_bounds_is_missing(bounds: dict[str, float]) -> None:
    with pytest.raises(ImpactMissing, match=r"system share is 0\.5"):
        reached("system share", 0.5, **bounds)
