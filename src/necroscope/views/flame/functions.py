"""Top functions of a window, or of two windows compared, as a table for the terminal and as
JSON.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from necroscope.model.frame import Frame
from necroscope.model.units import format_moment
from necroscope.stacks.differential import DifferentialTree
from necroscope.store.functions import FunctionWeight, Part
from necroscope.views.flame.boxes import shown
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.format import count, fit, literal

_MODULE: Final = 32
_NARROWEST_NAME: Final = 20
_PATHS: Final = 5
_PATH_FRAMES: Final = 6
Json = dict[str, Any]


def functions_text(
    functions: Sequence[FunctionWeight],
    heading: Heading,
    *,
    groups: Sequence[Part] = (),
    top: int,
    width: int | None = None,
) -> str:
    """`width` in cells cuts the lines; without it nothing is cut."""
    lines = [
        heading.lines()[0],
        *_part_lines(groups, top),
        "",
        f"{'self':>7} {'total':>7} {heading.window.unit:>9}  function",
    ]
    for each in functions[:top]:
        numbers = f"{each.self_share:>7.1%} {each.total_share:>7.1%} {count(each.self_weight):>9}"
        lines.append(_line(numbers, each.frame, width))
    return "\n".join([*lines, *_rest(len(functions) - top, "functions"), ""])


def functions_json(
    functions: Sequence[FunctionWeight], heading: Heading, groups: Sequence[Part] = ()
) -> Json:
    """Shares are of the window's samples."""
    found = [
        _frame_to_json(each.frame)
        | {
            "self": each.self_weight,
            "total": each.total_weight,
            "self_share": each.self_share,
            "total_share": each.total_share,
        }
        for each in functions
    ]
    parts = [
        {"label": literal(part.label), "samples": part.weight, "share": part.share}
        for part in groups
    ]
    return _window_to_json(heading.window) | {
        "node": heading.node,
        "functions": found,
        "groups": parts,
        "left_out": list(heading.left_out),
    }


Pair = tuple[Frame, FunctionWeight | None, FunctionWeight | None]


def pair_functions(
    window: Sequence[FunctionWeight], baseline: Sequence[FunctionWeight]
) -> list[Pair]:
    """Functions of both, those first whose share of the whole changed most."""
    now, before = ({each.frame: each for each in side} for side in (window, baseline))
    pairs = [(frame, now.get(frame), before.get(frame)) for frame in dict.fromkeys([*now, *before])]
    return sorted(pairs, key=lambda pair: -abs(_change(pair)))


def differential_text(
    pairs: Sequence[Pair],
    tree: DifferentialTree,
    heading: Heading,
    *,
    top: int,
    width: int | None = None,
) -> str:
    """Total shares: a function that is new with all that it calls is seen at once."""
    head = f"{'window':>8} {'baseline':>8} {'change':>8}  function, by total"
    lines = [heading.lines()[0], f"baseline: {heading.baseline}", "", head]
    for pair in pairs[:top]:
        frame, now, before = pair
        numbers = f"{_share(now):>8} {_share(before):>8} {100 * _change(pair):>+7.1f}%"
        lines.append(_line(numbers, frame, width))
    lines += _rest(len(pairs) - top, "functions")
    for title, nodes, shares in (
        ("paths that are new in the window", tree.appeared(), tree.window.share),
        ("paths that are only in the baseline", tree.vanished(), tree.baseline.share),
    ):
        if nodes:
            shown_paths = zip(nodes, _shown_paths(tree, nodes[:_PATHS]), strict=False)
            lines += [
                "",
                title,
                *(f"{shares[node]:>8.1%}  {_inner_end(path)}" for node, path in shown_paths),
            ]
            lines += _rest(len(nodes) - _PATHS, "paths")
    return "\n".join([*lines, ""])


def differential_json(pairs: Sequence[Pair], tree: DifferentialTree, heading: Heading) -> Json:
    assert heading.baseline is not None
    functions = [
        _frame_to_json(frame)
        | {
            "window_share": now.total_share if now else 0.0,
            "baseline_share": before.total_share if before else 0.0,
            "change": _change((frame, now, before)),
        }
        for frame, now, before in pairs
    ]
    return _window_to_json(heading.window) | {
        "node": heading.node,
        "baseline": _window_to_json(heading.baseline),
        "functions": functions,
        "appeared": _paths_to_json(tree, tree.appeared(), tree.window.share.tolist()),
        "vanished": _paths_to_json(tree, tree.vanished(), tree.baseline.share.tolist()),
        "left_out": list(heading.left_out),
    }


def _line(numbers: str, frame: Frame, width: int | None) -> str:
    name = shown(frame)
    if width is None:
        return f"{numbers}  {name.text}  {name.module}".rstrip()
    room = width - len(numbers) - 4 - _MODULE
    if room < _NARROWEST_NAME:
        return f"{numbers}  {fit(name.text, max(width - len(numbers) - 2, 1))}".rstrip()
    # The start of a kernel or library name tells it apart, the end of a path does.
    module = name.module.rsplit("/", 1)[-1]
    return f"{numbers}  {fit(name.text, room)}  {fit(module, _MODULE)}".rstrip()


def _part_lines(groups: Sequence[Part], top: int) -> Iterator[str]:
    if groups:
        yield ""
    for part in groups[:top]:
        yield f"{part.share:>7.1%} {count(part.weight):>9}  {literal(part.label)}"
    yield from _rest(len(groups) - top, "groups")


def _rest(left_out: int, what: str) -> list[str]:
    return [f"and {count(left_out)} more {what}: see --top, --json"] if left_out > 0 else []


def _share(function: FunctionWeight | None) -> str:
    """A function that one side has not is a dash."""
    return "–" if function is None else f"{function.total_share:.1%}"


def _change(pair: Pair) -> float:
    _, now, before = pair
    return (now.total_share if now else 0.0) - (before.total_share if before else 0.0)


def _shown_paths(tree: DifferentialTree, rows: list[int]) -> Iterator[list[str]]:
    return ([shown(tree.frames[frame]).text for frame in path] for path in tree.paths(rows))


def _inner_end(names: list[str]) -> str:
    """The inner end of a path, which is where it is new."""
    return " → ".join([*(["…"] if len(names) > _PATH_FRAMES else []), *names[-_PATH_FRAMES:]])


def _paths_to_json(tree: DifferentialTree, rows: list[int], shares: list[float]) -> list[Json]:
    return [
        {"share": shares[row], "path": path}
        for row, path in zip(rows, _shown_paths(tree, rows), strict=True)
    ]


def _frame_to_json(frame: Frame) -> Json:
    name = shown(frame)
    return {"function": name.text, "module": name.module, "kind": name.kind}


def _window_to_json(window: HeadingWindow) -> Json:
    return {
        "from": format_moment(window.from_ns),
        "to": format_moment(window.to_ns),
        "samples": window.samples,
    }
