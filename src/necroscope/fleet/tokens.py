"""Who may push and who may read: a TOML file of hashed tokens, looked at again when it changes.

[[token]]
sha256 = "..."          of the token; the token itself is on the node or with the reader
cluster = "eu-1"        what it pushes to, or reads; "*" for a reader of all
role = "push"           or "read"
node = "gpu-17"         optional: pushes as this node only
"""

import hashlib
import hmac
import re
import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.protocol import NAME

Role = Literal["push", "read"]
ROLES: Final[tuple[Role, ...]] = ("push", "read")
EVERY_CLUSTER: Final = "*"
_PREFIX: Final = "necro_"
# Tokens are found by the first 64 bits of their hash, and compared by all.
_SHELF: Final = 16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows."""

    cluster: str
    role: Role
    node: str | None = None

    @property
    def clusters(self) -> tuple[str, ...] | None:
        """Those it may read, as `Lake.dataset` wants them; None: all."""
        return None if self.cluster == EVERY_CLUSTER else (self.cluster,)


class Tokens:
    """The grants of a file, by the hash of their token."""

    def __init__(self, grants: dict[str, Grant]) -> None:
        self._grants = {digest[:_SHELF]: (digest, grant) for digest, grant in grants.items()}

    def grant_of(self, token: str) -> Grant | None:
        """In time that does not depend on how much of a token was right: it is the hash that is
        looked up and compared.
        """
        digest = digest_of(token)
        known, grant = self._grants.get(digest[:_SHELF], ("", None))
        return grant if hmac.compare_digest(known, digest) else None

    def refresh(self) -> bool:
        """These never change."""
        return False


class TokenFile:
    """Tokens that follow their file: a token that was taken out is refused within seconds, without
    a restart.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _state(path)
        self._tokens = read_tokens(path)

    def grant_of(self, token: str) -> Grant | None:
        return self._tokens.grant_of(token)

    def refresh(self) -> bool:
        """Whether the file had changed; one that is broken now is an error, each time, and the
        tokens stay as they were.
        """
        seen = _state(self._path)
        if seen == self._seen:
            return False
        # Who takes out the last token means it.
        self._tokens = read_tokens(self._path, may_be_none=True)
        self._seen = seen
        return True


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_tokens(path: Path, *, may_be_none: bool = False) -> Tokens:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read tokens from {path}: {error}", "make one with: necroscope fleet token new"
        ) from None
    entries = content.get("token", [])
    if not isinstance(entries, list) or not (entries or may_be_none):
        raise UsageError(f"{path} holds no [[token]]", "make one with: necroscope fleet token new")
    return Tokens(
        dict(_entry(entry, f"token {number} of {path}") for number, entry in enumerate(entries, 1))
    )


def _entry(entry: Any, what: str) -> tuple[str, Grant]:
    if not isinstance(entry, dict) or entry.keys() - {"sha256", "cluster", "role", "node", "note"}:
        raise UsageError(f"{what} has keys other than sha256, cluster, role, node and note")
    digest, cluster, role, node = (
        entry.get(name) for name in ("sha256", "cluster", "role", "node")
    )
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{what}: sha256 is not a hash of 64 hexadecimal digits",
            "write the hash of the token into the file, not the token itself",
        )
    if role not in ROLES:
        raise UsageError(f"{what}: role is {role!r}", "push or read")
    check_grant(str(cluster), cast("Role", role), node, what)
    return digest, Grant(str(cluster), cast("Role", role), node)


def check_grant(cluster: str, role: Role, node: object, what: str) -> None:
    if not NAME.fullmatch(cluster) and not (cluster == EVERY_CLUSTER and role == "read"):
        raise UsageError(
            f"{what}: {cluster!r} is not a valid name of a cluster",
            "letters, digits, '.', '_' and '-'; '*' only to read",
        )
    if node is not None and (not isinstance(node, str) or not NAME.fullmatch(node)):
        raise UsageError(
            f"{what}: {node!r} is not a valid name of a node", "letters, digits, '.', '_' and '-'"
        )


def new_token() -> str:
    """256 random bits; the prefix lets scanners of leaked secrets find it."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """Plain SHA-256 is enough: a token is random and cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def entry_text(token: str, grant: Grant) -> str:
    """The lines for the tokens file."""
    lines = [
        "[[token]]",
        f'sha256 = "{digest_of(token)}"',
        f'cluster = "{grant.cluster}"',
        f'role = "{grant.role}"',
    ]
    return "\n".join(lines + ([f'node = "{grant.node}"'] if grant.node else [])) + "\n"


def read_token(path: Path) -> str:
    """A token as a node or a reader keeps it: the only line of a file."""
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NecroscopeError(
            f"cannot read a token from {path}: {error}", "make one with: necroscope fleet token new"
        ) from None
    if not text or any(character.isspace() for character in text):
        raise NecroscopeError(
            f"{path} holds no token", "one line, as `necroscope fleet token new` prints it"
        )
    return text
