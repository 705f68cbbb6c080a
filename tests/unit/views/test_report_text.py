"""The page a tired engineer reads."""

from tests.drawn_node import at, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Report
from necroscope.model.reading import Gap
from necroscope.views.report_text import incident_to_text, report_to_text

WALK = """
    core 0:  ..............................
    core 1:  ...............kkkkkk.........
    k: system  {comm}[1872]  /system.slice/kubelet.service  Read > ksys_read, vfs_read, memcg_stat_show, mem_cgroup_iter
"""


def report_of(comm: str = "kubelet") -> Report:
    node = drawn_node(WALK.replace("{comm}", comm)).zombies(14, 68_680)
    return diagnose(
        node.event(
            20, "nic_reset", "ena 0000:20:03.0 eth0: Trigger reset is on", cpu=1, device="eth0"
        )
    )


def test_the_page_answers_the_questions_in_their_order() -> None:
    page = report_to_text(report_of())
    wanted = [
        "1 incident in 30 s of drawn",
        "core 1, system",
        "kubelet walked 68,680 dead memory cgroups",
        "cause    zombie-memcg-walk",
        "(very sure, 95%)",
        "who      kubelet, pid 1872, unit kubelet.service",
        "where    Read > ksys_read > vfs_read > memcg_stat_show > mem_cgroup_iter",
        "log      ",
        "why we think so",
        "what to do",
        "how to see that it helped",
        "what will not help",
        "huge pages",
    ]
    places = [page.find(text) for text in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


def test_no_line_is_wider_than_asked_for() -> None:
    assert max(map(len, report_to_text(report_of(), width=80).splitlines())) <= 80


def test_a_healthy_recording_is_one_line() -> None:
    page = report_to_text(Report(1, "node-a", at(0), at(60), ()))
    assert (
        page
        == "no incident in 1 min of node-a, 2025-10-09T08:53:20.000Z to 2025-10-09T08:54:20.000Z"
    )


def test_what_could_not_be_seen_is_said() -> None:
    page = report_to_text(
        Report(
            1,
            "n",
            at(0),
            at(60),
            (),
            (Gap("samples", at(1), at(3), "lost"),),
            ("no stacks: be root",),
        )
    )
    assert "what could not be seen" in page
    assert "no stacks: be root" in page
    assert "lost: 1 gap in samples, 2 s" in page


def test_an_empty_recording_says_so() -> None:
    assert report_to_text(Report(1, "n", None, None, ())) == (
        "nothing is recorded yet of n: ask again in a few seconds"
    )


def test_hostile_names_steer_no_terminal() -> None:
    report = report_of("a\x1b[31m\u202eb")
    for text in (
        report_to_text(report),
        incident_to_text(report.incidents[0]),
    ):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_unknown_is_said_plainly() -> None:
    node = drawn_node(
        "core 0: ..............\ncore 1: ....xxxxxx....\nx: system  tool[4]  /  main > odd_loop"
    )
    page = report_to_text(diagnose(node))
    assert "cause    unknown" in page
    assert "tool, pid 4" in page
    assert "odd_loop" in page


def test_headings_have_their_date() -> None:
    assert "── 1 of 1 ── 2025-10-09 08:53:3" in report_to_text(report_of())


def test_what_still_goes_on_is_reported_so() -> None:
    incident = report_of().incidents[0]
    assert "since 2025-10-09 08:53:3" in incident_to_text(incident, goes_on=True)
    assert "still going on" in incident_to_text(incident, goes_on=True)
    assert "still going on" not in incident_to_text(incident)


def test_a_moment_with_nothing_wrong_is_no_incident() -> None:
    node = drawn_node("core 0: ..............\ncore 1: ....uuuuuu....\nu: user  train[4]  /  main")
    page = report_to_text(diagnose(node, at_ns=at(6)))
    assert page.startswith("no incident at 2025-10-09T08:53:26.000Z of drawn")
    assert "1 incident" not in page
    assert "what to do" not in page


def test_damage_is_reported_first() -> None:
    gaps = (
        Gap("cores", at(0), at(50), "slow"),
        Gap("*", at(1), at(3), "segment 2025: manifest.json fails its checksum"),
    )
    page = report_to_text(Report(1, "n", at(0), at(60), (), gaps, ("no stacks: be root",)))
    assert "(parts of it are damaged" in " ".join(page.split())
    assert (
        page.index("damaged, cannot be read: segment 2025")
        < page.index("no stacks")
        < page.index("slow: 1 gap")
    )


ODD = """
    core 0:  ..............................
    core 1:  ...............kkkkkk.........
    k: system  tool[44]  /system.slice/tool.service  main > ksys_ioctl, odd_driver_loop
"""


def test_a_command_to_run_next_is_whole_on_its_line_and_names_the_recording() -> None:
    page = report_to_text(diagnose(drawn_node(ODD)), width=60, place="'/my recordings/a'")
    (command,) = [line.strip() for line in page.splitlines() if "necroscope flame" in line]
    assert command.startswith("necroscope flame '/my recordings/a' --from 2025-")
    assert command.endswith(" -o incident.html")
    assert "\n\n\n" not in page


def test_what_grew_is_a_number_first_and_long_names_are_cut() -> None:
    name = "v8::internal::" + "Very" * 50 + "LongName"
    page = report_to_text(diagnose(drawn_node(ODD.replace("odd_driver_loop", name))))
    evidence = " ".join(page.split())
    assert "100% of the time, 0% before: ksys_ioctl > v8::internal::Very" in evidence
    assert "LongName" not in evidence.partition("why we think so")[2].partition("what to do")[0]
