"""Which extra of the package brings a module that is not installed, as an error with the way out.

A command that needs an extra just imports it; `main` turns what is missing into this error.
"""

from typing import Final

from necroscope.errors import UsageError

# The module that is imported, and the extras of pyproject.toml that bring it.
EXTRAS: Final = {
    "duckdb": ("fleet", "ray"),
    "fastapi": ("view", "fleet"),
    "anyio": ("mcp",),
    "h11": ("fleet",),
    "mcp": ("mcp",),
    "opentelemetry": ("otlp",),
    "pydantic": ("view", "fleet"),
    "ray": ("ray",),
    "rich": ("top",),
    "textual": ("top",),
    "uvicorn": ("view", "fleet", "mcp"),
}


def missing_extra(error: ModuleNotFoundError, command: str) -> UsageError | None:
    """The extra named like the command if that brings the module; None if no extra brings it."""
    module = (error.name or "").partition(".")[0]
    extras = EXTRAS.get(module)
    if extras is None:
        return None
    extra = command if command in extras else extras[0]
    return UsageError(
        f"this needs the Python package {module}, which is not installed",
        f"pip install 'necroscope[{extra}]'",
    )
