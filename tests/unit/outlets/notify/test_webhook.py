"""The webhook over real HTTP: what it sends, how a receiver checks it, and what counts as
delivered.
"""

import hashlib
import hmac
from pathlib import Path

import pytest
from tests.drawn_node import at
from tests.receiving_server import (
    ReceivingServer,
    dripping_server,
    make_certificate,
    receiving_server,
)
from tests.unit.outlets.notify.conftest import MakeEntry

from necroscope.errors import UsageError
from necroscope.fleet import request
from necroscope.fleet.request import DeliveryError, Endpoint
from necroscope.outlets.notify.outbox import Letter
from necroscope.outlets.notify.webhook import Webhook, delivery_id


def hook(url: str, secret_file: Path | None = None, ca_file: Path | None = None) -> Webhook:
    return Webhook(Endpoint.parse(url, ca_file), secret_file, "node-a", {"zone": "a"})


def test_a_receiver_can_check_who_sent_it(
    receiver: ReceivingServer, entry: MakeEntry, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    hook(f"{receiver.url}/hook?team=ml", secret).deliver(Letter(entry(), at(20), 3), at(30))
    (request,) = receiver.received
    assert (request.method, request.path) == ("POST", "/hook?team=ml")
    timestamp = request.headers["X-Necroscope-Timestamp"]
    assert int(timestamp) == at(30) // 1_000_000_000
    expected = hmac.new(
        b"s3cret", f"{timestamp}.".encode() + request.body, hashlib.sha256
    ).hexdigest()
    assert request.headers["X-Necroscope-Signature"] == f"sha256={expected}"
    answer = entry().incident.as_json()
    answer["verdict"]["title"] = "a walk over dead cgroups held the core"
    assert request.content == {
        "type": "incident",
        "state": "closed",
        "delivery": request.headers["X-Necroscope-Delivery"],
        "node": "node-a",
        "labels": {"zone": "a"},
        "left_out_before": 3,
        "incident": answer,
    }


def test_without_a_secret_there_is_no_signature(
    receiver: ReceivingServer, entry: MakeEntry
) -> None:
    hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
    assert "X-Necroscope-Signature" not in receiver.received[0].headers


def test_every_try_of_one_incident_has_the_same_delivery_id(entry: MakeEntry) -> None:
    letter = Letter(entry(), at(20))
    assert delivery_id(letter, "node-a") == delivery_id(Letter(entry(), at(99), 5), "node-a")
    assert delivery_id(letter, "node-a") != delivery_id(letter, "node-b")
    going_on = Letter(entry(state="open"), at(20))
    assert delivery_id(letter, "node-a") != delivery_id(going_on, "node-a")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_any_other_answer_is_no_delivery(
    receiver: ReceivingServer, entry: MakeEntry, status: int
) -> None:
    receiver.replies.append((status, {"Retry-After": "17"}, b"go \x1b[31maway"))
    with pytest.raises(
        DeliveryError, match=rf"webhook 127.0.0.1: answered {status}: go \\x1b\[31maway"
    ) as caught:
        hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
    assert caught.value.wait_s == 17


def test_redirects_are_not_followed(receiver: ReceivingServer, entry: MakeEntry) -> None:
    receiver.replies.append((302, {"Location": f"{receiver.url}/elsewhere"}, b""))
    with pytest.raises(DeliveryError, match="answered 302"):
        hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
    assert [request.path for request in receiver.received] == ["/"]


def test_a_receiver_that_hangs_up_or_is_not_there_is_no_delivery(
    receiver: ReceivingServer, entry: MakeEntry
) -> None:
    receiver.replies.append((0, {}, b""))
    with pytest.raises(DeliveryError, match="without response"):
        hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
    with pytest.raises(DeliveryError, match="refused"):
        hook("http://127.0.0.1:9").deliver(Letter(entry(), at(20)), at(30))


@pytest.mark.parametrize(
    "head",
    [b"X-Long: ", b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"],
    ids=["head", "last body"],
)
def test_a_receiver_that_drips_is_left(
    entry: MakeEntry, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(request, "DEADLINE_S", 0.5)
    with (
        dripping_server(b"HTTP/1.1 200 OK\r\n" + head) as place,
        pytest.raises(DeliveryError, match=r"no whole answer within 0\.5 s"),
    ):
        hook(f"http://{place}/").deliver(Letter(entry(), at(20)), at(30))


def test_retry_after_is_bounded_and_a_date_is_left_to_us(
    receiver: ReceivingServer, entry: MakeEntry
) -> None:
    for text, wait_s in (
        ("999999", 3600),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-5", None),
        ("9" * 500, None),
    ):
        receiver.replies.append((503, {"Retry-After": text}, b""))
        with pytest.raises(DeliveryError) as caught:
            hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
        assert caught.value.wait_s == wait_s


def test_certificates_are_checked(entry: MakeEntry, tmp_path: Path) -> None:
    with receiving_server(make_certificate(tmp_path)) as receiver:
        with pytest.raises(DeliveryError, match="certificate verify failed"):
            hook(receiver.url).deliver(Letter(entry(), at(20)), at(30))
        assert receiver.received == []
        hook(receiver.url, ca_file=tmp_path / "ca.crt").deliver(Letter(entry(), at(20)), at(30))
        assert len(receiver.received) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a/b",
        "https://",
        "https://user:secret@host/",
        "http://host:99999/",
        "http://a b/",
        "host",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Endpoint.parse(url)
    assert "secret" not in caught.value.facts + caught.value.hint


def test_a_secret_that_went_away_is_a_delivery_to_try_again(
    receiver: ReceivingServer, entry: MakeEntry, tmp_path: Path
) -> None:
    with pytest.raises(DeliveryError, match="cannot read the secret"):
        hook(receiver.url, tmp_path / "gone").deliver(Letter(entry(), at(20)), at(30))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(DeliveryError, match="holds no secret"):
        hook(receiver.url, tmp_path / "empty").deliver(Letter(entry(), at(20)), at(30))
    assert receiver.received == []


def test_a_ca_file_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(UsageError, match="cannot use the certificates"):
        Endpoint.parse("https://host/", tmp_path / "ca")
