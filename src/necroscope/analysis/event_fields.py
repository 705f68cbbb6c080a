"""The fields of a row of `events`, which are JSON that a source wrote."""

import json
from collections.abc import Mapping
from typing import Any


def event_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """Empty where they are missing or damaged."""
    try:
        found = json.loads(event["fields"])
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
