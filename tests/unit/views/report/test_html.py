"""The page of a report: all of the verdict is in it, nothing of the machine can act in it."""

from dataclasses import replace
from html.parser import HTMLParser

from necroscope.analysis.report import (
    Alternative,
    Culprit,
    EventSeen,
    Evidence,
    Incident,
    Origin,
    Report,
    Verdict,
    WillNotHelp,
)
from necroscope.views.flame.embedded import asset
from necroscope.views.report.html import Pictures, report_html

S = 1_000_000_000
START = 1_776_248_000 * S
HOSTILE = "<img src=x onerror=alert(1)>\"'\x1b[2J"


def report(text: str = "kubelet") -> Report:
    seen = Evidence(f"{text} walks", START, START + S, 39, "samples")
    verdict = Verdict(
        cause="zombie-memcg-walk",
        title="a reader walks dead cgroups",
        confidence=0.93,
        summary=f"core 39 was held by {text}",
        culprit=Culprit(
            text, 1872, f"/{text}", f"{text}.service", None, ("read", "mem_cgroup_iter", text)
        ),
        origin=Origin("unit", "ecs.service"),
        evidence=(seen,),
        against=(Evidence("nothing much", START, START + S),),
        fix=("systemctl disable --now ecs.service",),
        verify=("the count stays flat",),
        will_not_help=(WillNotHelp("huge pages", "the walk is not over pages"),),
    )
    event = EventSeen(START, "nic_reset", 39, "eth0", 5, "napi CPU", f"{text} reset")
    incident = Incident(
        "i1",
        START,
        START + 6 * S,
        39,
        "system",
        (event,),
        (),
        verdict,
        (Alternative("rt-hog", 0.1, "no task"),),
    )
    return Report(1, text, START - S, START + 60 * S, (incident,))


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_every_part_of_the_verdict_is_on_the_page() -> None:
    page = report_html(report(), {})
    for text in (
        "core 39 was held by kubelet",
        "93% sure",
        "pid 1872",
        "kubelet.service",
        "unit ecs.service",
        "read → mem_cgroup_iter",
        "kubelet walks",
        "nothing much",
        "systemctl disable --now ecs.service",
        "the count stays flat",
        "<b>huge pages</b>: the walk is not over pages",
        "rt-hog",
        "core 39 (by napi CPU)",
    ):
        assert text in page, text


def test_names_from_the_machine_are_text_and_nothing_else() -> None:
    page = report_html(report(HOSTILE), {"i1": Pictures(timeline_svg="<svg></svg>")})
    tags = {tag for tag, _ in Elements(page).found}
    assert "img" not in tags
    assert "script" not in tags
    assert not [
        name
        for _, attributes in Elements(page).found
        for name in attributes
        if name.startswith("on")
    ]
    assert "\x1b" not in page


def test_the_page_loads_nothing_and_runs_only_the_script_of_the_flame_graph() -> None:
    pictures = Pictures(
        heat_map_svg="<svg/>", flame_page="<p>flames</p>", flame_script_hash="sha256-abc"
    )
    elements = Elements(report_html(report(), {"i1": pictures})).found
    (policy,) = [
        attributes["content"] for tag, attributes in elements if attributes.get("http-equiv")
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-abc'" in policy
    sources = [attributes["src"] for _, attributes in elements if "src" in attributes]
    assert len(sources) == 2
    assert all(source is not None and source.startswith("data:") for source in sources)
    (sandbox,) = [attributes["sandbox"] for tag, attributes in elements if tag == "iframe"]
    assert sandbox == "allow-scripts"


def test_without_pictures_nothing_may_run() -> None:
    assert "script-src" not in report_html(report(), {})


def test_a_healthy_recording_says_so() -> None:
    assert "Nothing was found" in report_html(Report(1, "node-a", START, START + S, ()), {})
    assert "the recording is empty" in report_html(Report(1, "node-a", None, None, ()), {})


def test_nobody_is_sure_of_what_is_not_known() -> None:
    known = report()
    verdict = replace(known.incidents[0].verdict, cause="unknown", confidence=0.3)
    page = report_html(
        replace(known, incidents=(replace(known.incidents[0], verdict=verdict),)), {}
    )
    assert "30% sure" not in page
    assert '<span class="sure">not known</span>' in page


def test_the_flame_graph_in_the_page_does_not_scroll_it_past_the_headline() -> None:
    assert "main.focus({ preventScroll: true })" in asset("page.js")
    assert "main.focus()" not in asset("page.js")
