"""The pattern table, and the search for the pattern of a line: one look at the words of the line
rejects nearly all of them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from necroscope.sources.kernel_log.ena_patterns import ENA_PATTERNS
from necroscope.sources.kernel_log.memory_patterns import MEMORY_PATTERNS
from necroscope.sources.kernel_log.nic_patterns import NIC_PATTERNS
from necroscope.sources.kernel_log.pattern import Pattern
from necroscope.sources.kernel_log.stall_patterns import STALL_PATTERNS

PATTERNS: Final = (*ENA_PATTERNS, *NIC_PATTERNS, *STALL_PATTERNS, *MEMORY_PATTERNS)

Found = tuple[Pattern, re.Match[str]]


class PatternSet:
    """Finds what a line means. A user's pattern never takes a line away from ours: it makes an
    event of its own.
    """

    def __init__(self, user_patterns: Iterable[Pattern] = ()) -> None:
        self.user_patterns = tuple(user_patterns)
        self._by_keyword: dict[str, list[Pattern]] = {}
        self._by_prefix = [pattern for pattern in PATTERNS if pattern.prefix]
        self._prefixes = tuple(pattern.prefix for pattern in self._by_prefix)
        for pattern in PATTERNS:
            for keyword in pattern.keywords:
                self._by_keyword.setdefault(keyword, []).append(pattern)
        self._has_no_keyword = self._by_keyword.keys().isdisjoint

    def find(self, text: str) -> Found | None:
        """Our pattern that matches this line, if one does."""
        words = text.split()
        if self._has_no_keyword(words):
            return self._first(self._by_prefix, text) if text.startswith(self._prefixes) else None
        for word in words:
            patterns = self._by_keyword.get(word)
            if patterns is not None and (found := self._first(patterns, text)) is not None:
                return found
        return None

    def find_user(self, text: str) -> list[Found]:
        """The user's patterns that match this line. Those with keywords want one of them as a part
        of the line.
        """
        found = []
        for pattern in self.user_patterns:
            if pattern.keywords and not any(keyword in text for keyword in pattern.keywords):
                continue
            match = pattern.regex.search(text)
            if match is not None:
                found.append((pattern, match))
        return found

    @staticmethod
    def _first(patterns: Sequence[Pattern], text: str) -> Found | None:
        for pattern in patterns:
            match = pattern.regex.match(text)
            if match is not None:
                return pattern, match
        return None
