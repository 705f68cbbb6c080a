"""`necroscope flame` as SVG: flame graphs, differentials and heat maps."""

from typing import BinaryIO, Final

from necroscope.cli.flame_outputs import Notes, TextStyle, Writer
from necroscope.cli.flame_question import FlameQuestion
from necroscope.views.flame.heading import HeadingWindow
from necroscope.views.flame.heat_svg import heat_map_svg
from necroscope.views.flame.svg import differential_svg, flame_svg


def _write_svg(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    if question.windows.baseline is None:
        tree = question.flame()
        heading = question.flame_heading(tree)
        out.write(flame_svg(tree, heading).encode())
    else:
        found = question.comparison()
        heading = question.comparison_heading(found)
        out.write(differential_svg(found.tree, heading).encode())
    return list(heading.left_out)


def _write_heat_map(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    heat = question.heat_map()
    to_ns = heat.start_ns + heat.column_ns * heat.weights.shape[1]
    first_ns, last_ns = question.windows.window
    window = HeadingWindow(max(first_ns, heat.start_ns), min(last_ns, to_ns), heat.samples)
    heading = question.heading(f"Heat map of {question.node}", window, heat.left_out)
    out.write(heat_map_svg(heat, heading).encode())
    return heat.left_out


WRITERS: Final[dict[str, Writer]] = {"svg": _write_svg, "heatmap-svg": _write_heat_map}
