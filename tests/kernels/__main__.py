"""Boots Debian's kernels under QEMU and runs the recorder and the diagnosis in them:
`scripts/test-kernels`.
"""

# ruff: noqa: T201 - what it has to say goes to a terminal

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kernels import guest, plan, story_kernel
from tests.kernels.failure import CannotTestError
from tests.kernels.image import NO_PROGRAMS, ROOT, STORY_PROGRAMS, Workshop
from tests.kernels.kernels import KERNELS, SMOKE, STORY, Kernel


@dataclass(frozen=True, slots=True)
class Result:
    """One check in one boot of one kernel."""

    kernel: str
    release: str
    boot: str
    check: str
    holds: bool
    text: str
    seconds: float


def main() -> int:
    chosen = _arguments()
    if chosen.list:
        for kernel in KERNELS:
            checks = ", ".join(
                check.name for planned in plan.whole(kernel) for check in planned.checks
            )
            print(f"{kernel.name:10} {kernel.package} of {kernel.suite}: {checks}")
        return 0
    workshop = Workshop(chosen.dir)
    names = chosen.kernel or ([SMOKE] if chosen.smoke else [kernel.name for kernel in KERNELS])
    kernels = [kernel for kernel in KERNELS if kernel.name in names]
    if chosen.story:
        kernels = [STORY]
    try:
        results = [result for kernel in kernels for result in _test(kernel, workshop, chosen)]
    except CannotTestError as error:
        print(
            f"error: {error.facts}" + (f"\nhint: {error.hint}" if error.hint else ""),
            file=sys.stderr,
        )
        return 2
    failed = [result for result in results if not result.holds]
    print(
        f"{len(results) - len(failed)} of {len(results)} checks hold; recordings and consoles:"
        f" {chosen.dir}/runs"
    )
    return 1 if failed or not results else 0


def _test(kernel: Kernel, workshop: Workshop, chosen: argparse.Namespace) -> list[Result]:
    _say(f"making the root image and the wheel for {kernel.architecture.debian}")
    programs = STORY_PROGRAMS if chosen.story else NO_PROGRAMS
    root = workshop.root_image(kernel.architecture, programs)
    wheel = workshop.wheel(kernel.architecture)
    bootable = workshop.bootable(kernel)
    made = [story_kernel.live_patch(chosen.dir, bootable.release)] if chosen.story else []
    boots = (
        plan.whole_story() if chosen.story else plan.smoke() if chosen.smoke else plan.whole(kernel)
    )
    boots = [planned for planned in boots if not chosen.boot or planned.boot.name in chosen.boot]
    results = []
    for planned in boots:
        _say(f"{kernel.name} ({bootable.release}), boot {planned.boot.name}")
        steps = [check.step for check in planned.checks]
        job = guest.Job(steps, wheel, planned.seconds, planned.files, made)
        directory = chosen.dir / "runs" / f"{kernel.name}-{planned.boot.name}"
        outcome = guest.run(bootable, root, planned.boot, job, directory)
        if outcome.is_emulators_fault:
            _say("the emulator ended the guest, see docs/kernels.md; once more")
            outcome = guest.run(bootable, root, planned.boot, job, directory)
        own = _results(kernel, bootable.release, planned, outcome)
        (outcome.directory / "checks.json").write_text(
            json.dumps([asdict(result) for result in own], indent=1)
        )
        results += own
    return results


def _results(
    kernel: Kernel, release: str, planned: plan.Planned, outcome: guest.Outcome
) -> list[Result]:
    if not outcome.steps:
        _say(f"nothing came back; the guest's last words:\n{outcome.console[-1500:]}")
    found = []
    for check in planned.checks:
        step = outcome.steps.get(check.name, {})
        holds, answer = plan.verdict_of(
            check, outcome.directory, step.get("code"), outcome.said(check.name)
        )
        result = Result(
            kernel.name,
            release,
            planned.boot.name,
            check.name,
            holds,
            answer,
            step.get("seconds", 0.0),
        )
        print(
            f"{'ok' if holds else 'FAILED':6} {kernel.name:10} {check.name:10}"
            f" {result.seconds:6.1f} s  {answer}",
            flush=True,
        )
        found.append(result)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/test-kernels", description=__doc__)
    parser.add_argument(
        "--smoke",
        action="store_true",
        help=f"one recording of 15 s, in kernel {SMOKE} unless others are named",
    )
    parser.add_argument(
        "--story",
        action="store_true",
        help="the incident that the project comes from, whole: docs/case-studies/the-story.md",
    )
    parser.add_argument(
        "--kernel",
        action="append",
        choices=[kernel.name for kernel in KERNELS],
        help="only this; may be repeated",
    )
    parser.add_argument(
        "--boot",
        action="append",
        choices=sorted({planned.boot.name for kernel in KERNELS for planned in plan.whole(kernel)}),
        help="only this boot; may be repeated",
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=ROOT / "build/kernels",
        help="images, recordings and consoles [build/kernels]",
    )
    parser.add_argument(
        "--list", action="store_true", help="the kernels and what is checked in each"
    )
    return parser.parse_args()


def _say(text: str) -> None:
    print(f"test-kernels: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
