"""What the core asks while a capture is replayed, answered from files: functions of the kernel, of
programs, of perf maps.
"""

from array import array
from collections import defaultdict
from contextlib import closing
from typing import Final

from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.profile.core import KERNEL, Question, QuestionKind

# Functions are asked for, then code that a mapping of the same turn lies over.
_MOST_ROUNDS: Final = 4


class Answers:
    """`build_ids` are those that the head of the file has by path."""

    def __init__(
        self,
        profile: ImportProfile,
        kernel: KernelNames,
        files: SymbolFiles,
        build_ids: dict[str, str],
    ) -> None:
        self._profile = profile
        self._numbering = profile.numbering
        self._core = profile.core
        self._kernel = kernel
        self._files = files
        self._build_ids = build_ids
        self._modules: dict[int, tuple[str, str | None]] = {}

    def finish_turn(self) -> None:
        """Answer until every row has its stack."""
        for _ in range(_MOST_ROUNDS):
            questions = self._core.questions()
            if not questions:
                break
            self._answer(questions)
            if not self._core.resume():
                break
        self._core.finish()

    def _answer(self, questions: list[Question]) -> None:
        modules: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        blocks: list[int] = []
        places: defaultdict[int, list[Question]] = defaultdict(list)
        for question in questions:
            if question.kind == QuestionKind.PLACE:
                places[question.pid].append(question)
            elif question.module == KERNEL:
                blocks.append(question.where)
            else:
                modules[question.module].append(question.where)
        for module, asked in modules.items():
            with closing(self._files.open(*self._module(module))) as file:
                self._core.learn_symbols(module, asked, file.functions, file.descriptor)
        for block in blocks:  # last: a thread still reads kallsyms when the first one is asked for
            self._kernel.answer(block)
        for pid, unnamed in places.items():
            names = self._files.jit_functions(pid, [question.where for question in unnamed])
            for question, name in zip(unnamed, names, strict=True):
                self._core.learn_place(
                    question.module,
                    question.where,
                    (name or "").encode("utf-8", "backslashreplace"),
                )

    def _module(self, number: int) -> tuple[str, str | None]:
        """Path and build id."""
        if self._numbering != self._profile.numbering:  # modules may have other numbers
            self._numbering = self._profile.numbering
            self._modules.clear()
        known = self._modules.get(number)
        if known is None:
            module = self._core.module(number)
            path = module.path.decode("utf-8", "surrogateescape")
            known = self._modules[number] = path, module.build_id or self._build_ids.get(path)
            self._profile.names.build_ids[number] = known[1]
        return known
