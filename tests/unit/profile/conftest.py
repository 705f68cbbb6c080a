"""A profile with one web server and one shell in it, older than the profile."""

from collections.abc import Iterator

import pytest
from tests.drawn_profile import DrawnProfile


@pytest.fixture
def profile() -> Iterator[DrawnProfile]:
    drawn = DrawnProfile()
    drawn.runs(0, "swapper")
    drawn.runs(10, "nginx", cgroup=0)
    drawn.runs(20, "sh", cgroup=1)
    yield drawn
    drawn.core.close()
