"""Bursts on the dot, of a program that does nothing in between."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Origin


def picture(core: str, job: str = "rotate") -> str:
    lines = "\n".join(
        f"    {letter}: user  {job}[{pid}]  /  main, deflate"
        for letter, pid in zip("abcdefgh", range(900, 908), strict=True)
    )
    other = "    z: user  solver[31]  /  main, multiply\n    w: user  indexer[50]  /  main, merge"
    return f"core 0:  {core}\n    core 1:  {'.' * len(core)}\n{lines}\n{other}"


def beside_work(core: str) -> str:
    """Somebody has the core between the bursts, and has to make way."""
    return picture(core.replace(".", "w"))


def test_bursts_at_a_steady_beat_are_named_with_their_program_and_period() -> None:
    (incident,) = diagnose(
        drawn_node(beside_work("......aa........bb........cc........dd........ee........ff......"))
    ).incidents
    verdict = incident.verdict
    assert verdict.cause == "periodic-job"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "rotate"
    assert "every 10 s" in verdict.summary
    assert "another process each time" in verdict.summary


def test_bursts_at_random_are_not_named() -> None:
    assert not diagnose(
        drawn_node(beside_work("..aa...bb............cc....dd..................ee...ff..........."))
    ).incidents


def test_a_loop_with_a_pause_drifts_and_is_not_named() -> None:
    core = "".join("aa" + "." * rest for rest in (17, 19, 17, 19, 18, 17))
    assert not diagnose(drawn_node(beside_work(core))).incidents


def test_three_bursts_are_too_few() -> None:
    assert not diagnose(
        drawn_node(
            beside_work("......aa........bb........cc......................................")
        )
    ).incidents


def test_a_steady_beat_of_different_programs_is_not_one_job() -> None:
    drawn = picture("......aa........zz........cc........zz........ee........zz......")
    assert not diagnose(drawn_node(drawn)).incidents


def test_a_burst_with_a_mechanism_is_named_by_it() -> None:
    drawn = (
        picture("......aa........bb........cc........dd........ee........ff......")
        .replace("user  rotate", "system  rotate")
        .replace("main, deflate", "read > ksys_read, vfs_read, seq_read_iter, tcp4_seq_show")
    )
    found = diagnose(drawn_node(drawn)).incidents
    assert found
    assert {incident.verdict.cause for incident in found} == {"proc-net-scan"}


def test_bursts_on_one_core_do_not_take_over_what_happens_on_another() -> None:
    drawn = drawn_node(
        """
        core 0:  wwwwwwaawwwwwwwwaawwwwwwwwaawwwwwwwwaawwwwwwwwaawwwwwwwwaawwwwww
        core 1:  ..........................rrrrrr................................
        a: user  rotate[9]  /  main, deflate
        w: user  indexer[50]  /  main, merge
        r: system  statsd[52]  /  read > ksys_read, vfs_read, seq_read_iter, tcp4_seq_show
        """
    )
    found = {incident.core: incident for incident in diagnose(drawn).incidents}
    assert {core: incident.verdict.cause for core, incident in found.items()} == {
        0: "periodic-job",
        1: "proc-net-scan",
    }
    assert {episode.core for episode in found[1].episodes} == {1, None}


def test_a_job_that_nobody_feels_is_no_incident() -> None:
    assert not diagnose(
        drawn_node(
            picture("a" + "." * 14 + "b" + "." * 14 + "c" + "." * 14 + "d" + "." * 14 + "e....")
        )
    ).incidents
    assert not diagnose(
        drawn_node(picture("......aa........bb........cc........dd........ee........ff......"))
    ).incidents


def test_work_that_makes_way_for_a_moment_now_and_then_is_well() -> None:
    assert not diagnose(drawn_node(beside_work(("a" + "." * 19) * 6))).incidents


def test_bursts_half_a_minute_apart_that_starve_a_thread_are_one_incident() -> None:
    node = drawn_node(picture(("aa" + "." * 28) * 6))
    for start in range(0, 180, 30):
        node.add(
            "runqueue",
            start + 2,
            cpu=0,
            pid=20,
            comm="napi/eth0-5",
            state="S",
            run_ns=0,
            delay_ns=1_000_000_000,
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "periodic-job"
    assert "every 30 s" in incident.verdict.summary


def test_the_timer_that_starts_the_job_at_this_beat_is_what_to_act_on() -> None:
    drawn = beside_work("......aa........bb........cc........dd........ee........ff......")
    node = drawn_node(
        drawn.replace("]  /  main, deflate", "]  /system.slice/rotate.service  main, deflate")
    )
    second_ns = 1_000_000_000
    for timer, starts, period_s in (
        ("daily", "rotate", 86_400),
        ("other", "backup", 10),
        ("rotate", "rotate", 10),
    ):
        values = {
            "schedule": f"OnUnitActiveUSec={period_s}s",
            "fragment": f"/etc/systemd/system/{timer}.timer",
        }
        node.add(
            "units",
            1,
            unit=f"{timer}.timer",
            starts=f"{starts}.service",
            period_ns=period_s * second_ns,
            **values,
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "periodic-job"
    assert incident.verdict.origin == Origin("unit", "rotate.timer")
    text = [(item.text, item.table) for item in incident.verdict.evidence]
    assert ("rotate.timer starts its unit: OnUnitActiveUSec=10s", "units") in text
    assert ("rotate.timer: unit file /etc/systemd/system/rotate.timer", "units") in text
    assert incident.verdict.fix[0].startswith("systemctl edit rotate.timer")


def test_a_timer_of_another_beat_is_not_named() -> None:
    drawn = beside_work("......aa........bb........cc........dd........ee........ff......")
    node = drawn_node(
        drawn.replace("]  /  main, deflate", "]  /system.slice/rotate.service  main, deflate")
    )
    node.add("units", 1, unit="rotate.timer", starts="rotate.service", period_ns=86_400_000_000_000)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin == Origin("unit", "rotate.service")
