"""What stands above the answers of `necroscope flame`."""

from necroscope.cli.flame_question import Comparison, Question
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.heading import Heading, Window


def flame_heading(question: Question, tree: FlameTree) -> Heading:
    return question.heading(f"Flame graph of {question.node}", _window(tree), tree.left_out)


def comparison_heading(question: Question, found: Comparison) -> Heading:
    title = f"Differential flame graph of {question.node}"
    return question.heading(
        title, _window(found.window), found.tree.left_out, _window(found.baseline)
    )


def _window(tree: FlameTree) -> Window:
    return Window(tree.from_ns, tree.to_ns, tree.samples)
