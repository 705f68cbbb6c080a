"""What tests of both pages ask of a page in a browser."""

from urllib.parse import parse_qs


def collect_errors(page) -> list[str]:
    """Script errors and refused resources, from now on."""
    messages: list[str] = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "console",
        lambda message: messages.append(message.text) if message.type == "error" else None,
    )
    return messages


def words(page) -> dict[str, str]:
    """The state as it stands in the address."""
    return {
        name: values[0]
        for name, values in parse_qs(page.evaluate("location.hash.slice(1)")).items()
    }


def changed(page, action) -> dict[str, str]:
    """The state after an action that changes it."""
    before = page.evaluate("location.hash")
    action()
    page.wait_for_function("before => location.hash !== before", arg=before)
    return words(page)
