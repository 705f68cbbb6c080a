"""What the fleet's page asks beside the questions: of the reader's clusters only."""

from pathlib import Path

from tests.drawn_fleet import drawn_fleet
from tests.fleet_batches import START_NS
from tests.served_collector import served

from necroscope.cli.view import recording_of
from necroscope.fleet.collector.app import create_fleet_app
from necroscope.fleet.tokens import Grant, Tokens, digest_of

GRANTS = {
    "push": Grant("eu-1", "push"),
    "read": Grant("eu-1", "read"),
    "read-us": Grant("us-1", "read"),
}
TIME = {"since": "2025-10-08", "until": "2025-10-10"}


def test_a_reader_is_offered_what_its_clusters_have(tmp_path: Path) -> None:
    tokens = Tokens({digest_of(token): grant for token, grant in GRANTS.items()})
    with served(
        create_fleet_app(drawn_fleet(tmp_path / "lake", START_NS), tokens, recording_of)
    ) as client:

        def ask(question: str, token: str, **words: str) -> tuple[int, dict]:
            answer = client.get(
                f"/v1/{question}", params=TIME | words, headers={"Authorization": f"Bearer {token}"}
            )
            return answer.status_code, answer.json()

        assert len(ask("choices", "read")[1]["events"]) == 2
        assert ask("choices", "read-us")[1]["events"] == []
        assert {core["cluster"] for core in ask("worst-cores", "read")[1]["cores"]} == {"eu-1"}
        assert ask("worst-cores", "read-us")[1]["cores"] == []
        for question in ("choices", "worst-cores"):
            assert ask(question, "push")[0] == 403
            assert ask(question, "nobody")[0] == 401
            assert ask(question, "read", since="yesterday")[0] == 400
