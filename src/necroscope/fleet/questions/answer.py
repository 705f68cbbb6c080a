"""Every question by its name, with its words as text: command line and collector ask in the same
way, and get the same JSON.
"""

from importlib import import_module
from typing import Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.words import Json, Words

_PARTS: Final = "necroscope.fleet.questions"


def answer(name: str, questions: LakeQuestions, words: Words) -> Json:
    """What is not said, or empty, has its default."""
    said = {word: value for word, value in words.items() if value not in (None, "")}
    # Loaded when asked: who asks about one job waits for its imports too, and for no others.
    part = import_module(f"{_PARTS}.{'job_answer' if name == 'job' else 'node_answers'}")
    found: Json = part.ANSWERS[name](questions, said)
    return found
