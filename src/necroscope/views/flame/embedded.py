"""What a self-contained document carries inside: its script and style files, and its data as
JSON.
"""

import json
from importlib.resources import files


def asset(name: str) -> str:
    return files("necroscope.views.flame").joinpath(name).read_text("utf-8")


def embedded_json(value: object) -> str:
    """Without `<`, `>` and `&` no text in it can end a script element or a CDATA section; all else
    is ASCII anyway.
    """
    return (
        json.dumps(value, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
