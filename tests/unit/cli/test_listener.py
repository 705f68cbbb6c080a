"""What connections to our servers are like."""

import socket

import pytest

from necroscope.cli.listener import listener_on
from necroscope.errors import UsageError


def test_a_connection_sends_the_body_of_an_answer_without_waiting() -> None:
    with (
        listener_on("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()[:2]),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_taken_port_is_an_error_with_a_way_out() -> None:
    with (
        listener_on("127.0.0.1", 0) as listener,
        pytest.raises(UsageError, match="cannot listen on") as refused,
    ):
        listener_on("127.0.0.1", listener.getsockname()[1])
    assert "--port" in refused.value.hint
