"""The images of a node."""

import json
from pathlib import Path

import pytest
from tests.fake_daemon import never, unix_daemon

from necroscope.errors import SourceUnavailable
from necroscope.sources.facts import images
from necroscope.sources.facts.images import IMAGE_LIMIT, parse_images


def test_each_name_of_an_image_is_a_fact() -> None:
    body = json.dumps(
        [
            {"Id": "sha256:5c3d0f1e2a4b6c", "RepoTags": ["amazon/agent:latest", "agent:1"]},
            {"Id": "sha256:aa", "RepoTags": None},
            {"Id": "sha256:bb", "RepoTags": ["<none>:<none>"]},
            {"Id": "sha256:cc", "RepoTags": ["\x1b[2Jevil"]},
        ]
    ).encode()
    found = list(parse_images(body))
    assert [(each.name, each.value) for each in found[1:]] == [
        ("agent:1", "sha256:5c3d0f1e2a4b"),
        ("amazon/agent:latest", "sha256:5c3d0f1e2a4b"),
    ]
    assert found[0].name.isprintable()


@pytest.mark.parametrize("body", [b"", b"{}x", b"[1]", b'[{"RepoTags": ["a"]}]', b"[" * 100_000])
def test_an_answer_of_another_form_is_said_to_be_one(body: bytes) -> None:
    with pytest.raises(SourceUnavailable):
        list(parse_images(body))


def test_of_very_many_images_only_some_are_reported() -> None:
    body = json.dumps(
        [{"Id": "i", "RepoTags": [f"x:{number}"]} for number in range(2_000)]
    ).encode()
    assert len(list(parse_images(body))) == IMAGE_LIMIT


def test_a_node_without_a_daemon_has_none_and_one_that_hangs_costs_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(images.collect(tmp_path)) == []
    monkeypatch.setattr(images, "_TIMEOUT_S", 0.1)
    with (
        unix_daemon(tmp_path / "run/docker.sock", never, closes=False),
        pytest.raises(SourceUnavailable),
    ):
        list(images.collect(tmp_path))
