"""A sweep over a lake: complete, the same in any order, and not done twice."""

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fleet_evidence import INCIDENT, put_bundle, verdicts_in

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Report
from necroscope.fleet import judging
from necroscope.fleet import sweep as sweeping
from necroscope.fleet.evidence import StoredBundle, mark_judged, read_judged
from necroscope.fleet.judging import BundleJudgement, read_and_judge, without_rows
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.fleet.sweep import sweep
from necroscope.fleet.table_files import write_rows
from necroscope.model.span import Span
from necroscope.store.query import Store

NOW_NS = 1_800_000_000_000_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


@pytest.fixture(autouse=True)
def _analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same window gives the same verdict: here the analysis is not what is tried."""
    monkeypatch.setattr(judging, "diagnose", _once)


@functools.cache
def _found(window: Span) -> Report:
    moved = INCIDENT.moved_store(window[0] - INCIDENT.window[0], "of-the-bundle")
    return diagnose(moved, span=window)


def _once(store: Store, *, span: Span) -> Report:
    assert store.info().from_ns == span[0]
    return _found(span)


class Here:
    """Judges in this process, in the order given."""

    def __init__(
        self, lake: Lake, order: Callable[[list[StoredBundle]], Iterable[StoredBundle]] = list
    ) -> None:
        self.lake, self.order, self.asked = lake, order, 0

    def __call__(self, evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        for one in self.order(list(evidence)):
            self.asked += 1
            yield read_and_judge(self.lake, one, now_ns)


def test_verdicts_go_into_the_lake(lake: Lake) -> None:
    put_bundle(lake, "a")
    put_bundle(lake, "b", 3)
    seen: list[tuple[int, int]] = []
    swept = sweep(lake, Here(lake), progress=lambda done, of: seen.append((done, of)))
    assert (swept.bundles, swept.known, swept.judged, swept.incidents) == (2, 0, 2, 2)
    assert dict(swept.causes) == {"zombie-memcg-walk": 2}
    assert seen == [(1, 2), (2, 2)]
    assert [row["node"] for row in lake.dataset("incidents").to_table().to_pylist()] == ["a", "b"]


def test_what_this_version_has_judged_is_not_judged_again(lake: Lake) -> None:
    put_bundle(lake, "a")
    first = Here(lake)
    sweep(lake, first)
    put_bundle(lake, "b")
    second = Here(lake)
    assert (sweep(lake, second).known, second.asked) == (1, 1)
    third = Here(lake)
    assert (sweep(lake, third, is_again=True).judged, third.asked) == (2, 2)


def test_a_verdict_of_the_node_itself_counts_as_judged(lake: Lake) -> None:
    of_node, of_sweep = put_bundle(lake, "a"), put_bundle(lake, "b")
    write_rows(lake, "incidents", read_and_judge(lake, of_node, NOW_NS).rows, "node", NOW_NS)
    mark_judged(lake, sweeping.__version__, [of_sweep], "writer", NOW_NS)
    assert read_judged(lake, sweeping.__version__) == {of_node.key, of_sweep.key}
    assert sweep(lake, Here(lake)).known == 2


def test_another_version_judges_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    put_bundle(lake, "a")
    sweep(lake, Here(lake))
    monkeypatch.setattr(sweeping, "__version__", "99.0")
    assert sweep(lake, Here(lake)).judged == 1


def test_it_tells_which_verdicts_changed(lake: Lake) -> None:
    same, other = put_bundle(lake, "a"), put_bundle(lake, "b")
    rows = pa.concat_tables([read_and_judge(lake, one, NOW_NS).rows for one in (same, other)])
    for analysed_ns, causes in (
        (5, ["direct-reclaim", "direct-reclaim"]),
        (6, ["zombie-memcg-walk", "unknown"]),
    ):
        older = rows.set_column(
            rows.schema.get_field_index("cause"), rows.schema.field("cause"), pa.array(causes)
        )
        place, column = rows.schema.get_field_index("analysed_ns"), pa.array([analysed_ns] * 2)
        write_rows(
            lake,
            "incidents",
            older.set_column(place, rows.schema.field("analysed_ns"), column),
            "node",
            analysed_ns,
        )
    swept = sweep(lake, Here(lake), is_again=True)
    assert swept.as_json()["changed"] == [
        {"from": "unknown", "to": "zombie-memcg-walk", "incidents": 1}
    ]


def test_the_rows_do_not_depend_on_the_order(lake: Lake, tmp_path: Path) -> None:
    other = Lake.open(str(tmp_path / "other"))
    for place in (lake, other):
        for node, minutes in (("a", 0), ("b", 3), ("a", 3)):
            put_bundle(place, node, minutes)
    sweep(lake, Here(lake), clock_ns=lambda: NOW_NS)
    sweep(other, Here(other, reversed), clock_ns=lambda: NOW_NS)
    assert verdicts_in(lake) == verdicts_in(other)
    assert len(verdicts_in(lake)) == 3
    assert lake.dataset("incidents").to_table()["analysed_ns"].unique().to_pylist() == [NOW_NS]


def test_a_broken_bundle_is_reported_skipped_and_not_tried_again(lake: Lake) -> None:
    put_bundle(lake, "a")
    broken = put_bundle(lake, "b", content=b"no bundle")
    messages: list[str] = []
    swept = sweep(lake, Here(lake), tell=messages.append)
    assert list(swept.broken) == [broken.path]
    assert swept.incidents == 1
    assert len(messages) == 1
    assert broken.path in messages[0]
    assert sweep(lake, Here(lake)).known == 2


def test_what_could_not_be_read_is_tried_again(lake: Lake) -> None:
    put_bundle(lake, "a")

    def unlucky(evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        return (without_rows(one, unread="the lake was away") for one in evidence)

    swept = sweep(lake, unlucky)
    assert (swept.judged, len(swept.unread)) == (0, 1)
    assert sweep(lake, Here(lake)).judged == 1


def test_a_sweep_that_is_interrupted_goes_on_where_it_stopped(lake: Lake) -> None:
    for node in "abc":
        put_bundle(lake, node)

    def interrupted(evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        yield next(Here(lake)(evidence, now_ns))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(lake, interrupted)
    assert len(verdicts_in(lake)) == 1
    rest = Here(lake)
    sweep(lake, rest)
    assert rest.asked == 2
    assert [row[1] for row in verdicts_in(lake)] == ["a", "b", "c"]


def test_a_kill_between_rows_and_note_costs_time_and_no_verdict(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_bundle(lake, "a")
    with monkeypatch.context() as patch:
        patch.setattr(
            sweeping, "mark_judged", lambda *_: (_ for _ in ()).throw(LakeError("killed"))
        )
        with pytest.raises(LakeError):
            sweep(lake, Here(lake))
    # The row itself says who judged: it is the note of a bundle with an incident.
    assert len(read_judged(lake, sweeping.__version__)) == 1
    assert sweep(lake, Here(lake)).known == 1


def test_verdicts_are_written_in_groups(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in "abcde":
        put_bundle(lake, node)
    monkeypatch.setattr(sweeping, "_FLUSH_BUNDLES", 2)
    sweep(lake, Here(lake))
    assert len(lake.list("swept")) == 3
    assert len(verdicts_in(lake)) == 5


def test_a_lake_without_evidence_is_well(lake: Lake) -> None:
    swept = sweep(lake, Here(lake))
    assert swept.as_json()["bundles"] == 0
    assert lake.list("swept") == []
