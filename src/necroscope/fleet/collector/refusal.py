"""The answers that are no: a status, facts, a way out, and when to come again."""

from fastapi import Request
from fastapi.responses import JSONResponse

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.lake_files import LakeError, NotInLake
from necroscope.fleet.protocol import BadBatch, TooLarge

LAKE_RETRY_S = 30


class Refusal(NecroscopeError):  # noqa: N818 - the name says the fact
    """An answer other than 200; with `retry_after_s` the same request may be taken later."""

    def __init__(
        self, status: int, facts: str, hint: str, retry_after_s: int | None = None
    ) -> None:
        super().__init__(facts, hint)
        self.status = status
        self.retry_after_s = retry_after_s


def refusal_of(error: NecroscopeError) -> Refusal:
    """What an error of the parts below means to a client."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, NotInLake):
        return Refusal(404, error.facts, error.hint)
    if isinstance(error, LakeError):
        return Refusal(503, error.facts, error.hint, LAKE_RETRY_S)
    status = (
        413
        if isinstance(error, TooLarge)
        else 400
        if isinstance(error, BadBatch | UsageError)
        else 500
    )
    return Refusal(status, error.facts, error.hint)


async def answer_refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NecroscopeError)
    refusal = refusal_of(error)
    headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": refusal.facts, "hint": refusal.hint}, refusal.status, headers)
