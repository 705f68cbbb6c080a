"""Heat maps of `necroscope flame`."""

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Final

from necroscope.cli.flame_formats import Notes, TextStyle
from necroscope.cli.flame_question import Question
from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.heading import Heading, Window
from necroscope.views.flame.heat_png import heat_map_png
from necroscope.views.flame.heat_svg import heat_map_svg


def _write(
    draw: Callable[[HeatMap, Heading], str | bytes],
    question: Question,
    out: BinaryIO,
    _style: TextStyle,
) -> Notes:
    heat = question.heat_map()
    to_ns = heat.start_ns + heat.column_ns * heat.weights.shape[1]
    first_ns, last_ns = (
        max(question.windows.window[0], heat.start_ns),
        min(question.windows.window[1], to_ns),
    )
    heading = question.heading(
        f"Heat map of {question.node}", Window(first_ns, last_ns, heat.samples), heat.left_out
    )
    picture = draw(heat, heading)
    out.write(picture.encode() if isinstance(picture, str) else picture)
    return heat.left_out


WRITERS: Final = {
    "heatmap-svg": partial(_write, heat_map_svg),
    "heatmap-png": partial(_write, heat_map_png),
}
