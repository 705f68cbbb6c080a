"""Every kernel gets every check it can have, each of which is a file that runs inside."""

from pathlib import Path

import pytest
from tests.kernels import plan
from tests.kernels.kernels import KERNELS, SMOKE, Kernel, kernel_named

SETS = Path(plan.__file__).parent / "sets"
SHARED = {"looking", "starving", "wire"}
# Runs in a guest that scripts/test-power-cuts boots.
ELSEWHERE = {"cut_off"}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_checks_of_a_kernel_are_sets_that_run_inside(kernel: Kernel) -> None:
    for planned in plan.whole(kernel):
        for check in planned.checks:
            assert 'if __name__ == "__main__":' in (SETS / f"{check.module}.py").read_text()


def test_every_set_is_run_in_some_kernel() -> None:
    run = {
        check.module
        for boots in ([plan.whole_story()] + [plan.whole(kernel) for kernel in KERNELS])
        for planned in boots
        for check in planned.checks
    }
    assert run == {path.stem for path in SETS.glob("*.py")} - SHARED - ELSEWHERE


def test_a_kernel_without_the_driver_is_not_asked_for_its_resets() -> None:
    boots = [planned.boot.name for planned in plan.whole(kernel_named("6.1-cloud"))]
    assert "reset" not in boots


def test_the_smoke_is_one_boot_of_one_kernel() -> None:
    assert kernel_named(SMOKE) in KERNELS
    (planned,) = plan.smoke()
    assert [check.name for check in planned.checks] == ["record"]


def test_a_broken_result_fails_its_check_and_says_why(tmp_path: Path) -> None:
    check = plan.smoke()[0].checks[0]
    assert plan.verdict_of(check, tmp_path, None, "") == (False, "the guest did not get that far")
    assert plan.verdict_of(check, tmp_path, 1, "Traceback")[1] == "exit code 1 inside: Traceback"
    holds, found = plan.verdict_of(check, tmp_path, 0, "")
    assert not holds
    assert "Error" in found
