"""Tools by keywords: a small ranking in memory, for hundreds of definitions.

Names, titles, descriptions and parameters are taken for words (``readTextFile``,
``read_text_file`` and ``read.text-file`` are the same three), and ranked by BM25: rare words
count more, words in the name more than words in the text. A word that no tool has may be the
beginning of one, or one with a slip in it. The same question always has the same answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from holdfast.agents.listing import ServerTool

WEIGHTS: Final = {"name": 4.0, "server": 2.0, "title": 2.0, "parameters": 1.5, "description": 1.0}
SATURATION: Final = 1.2
LENGTH: Final = 0.6
"""How much a long description is held against a tool."""
BEGINNING: Final = 0.6
SLIP: Final = 0.4
LONGEST: Final = 4000
"""Characters of a description that are looked at."""

_RUNS: Final = re.compile(r"[^\W_]+")
_SEAMS: Final = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[0-9])(?=[^0-9])|(?<=[^0-9])(?=[0-9])"
)
"""Inside ``readFile``, ``HTTPServer`` and ``utf8``; not inside ``URLs``."""
_SMALL: Final = """
a an and are as at be by do for from how i in into is it me my of on or please that the this to
use want what which with you your
"""
_EMPTY: Final = frozenset(_SMALL.split())


class Hit(Struct, frozen=True):
    """A tool that fits, and how well: scores compare within one search."""

    tool: ServerTool
    score: float


def words(text: str) -> list[str]:
    """The words of a name or a text, in lower case and without their endings."""
    runs = _RUNS.findall(text)
    return [_stem(word.casefold()) for run in runs for word in _SEAMS.split(run)]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """Without the endings that English adds: ``files`` and ``listing`` are ``file``, ``list``."""
    if not word.isascii() or len(word) < 4:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3 and any(letter in "aeiouy" for letter in stem):
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            return stem[:-1] if doubled else stem
    return word


def signature(tools: Sequence[ServerTool]) -> tuple[Any, ...]:
    """Equal for lists of the same tools: what an index was made from."""
    return tuple(
        (one.name, one.tool.title, one.tool.description, bytes(one.tool.input_schema_json))
        for one in tools
    )


class Index:
    """Some tools, ready to be searched."""

    def __init__(self, tools: Iterable[ServerTool]) -> None:
        self._tools = sorted(tools, key=lambda one: one.name)
        self._counts = [_counts(one) for one in self._tools]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = (sum(self._lengths) / len(self._lengths) if self._lengths else 0.0) or 1.0
        self._places: dict[str, list[int]] = {}
        for place, counts in enumerate(self._counts):
            for word in counts:
                self._places.setdefault(word, []).append(place)

    def __repr__(self) -> str:
        return f"<Index {len(self._tools)} tools, {len(self._places)} words>"

    def __len__(self) -> int:
        return len(self._tools)

    def search(self, query: str, limit: int = 5) -> list[Hit]:
        """The best tools for a question, best first; none that has nothing to do with it."""
        asked = Counter(words(query[:LONGEST]))
        useful = {word: count for word, count in asked.items() if word not in _EMPTY} or asked
        scores: dict[int, float] = {}
        for word in useful:
            for place, score in self._scores(word).items():
                scores[place] = scores.get(place, 0.0) + score
        # Names break ties, so that equals always come in the same order.
        ranked = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
        return [Hit(self._tools[place], round(score, 6)) for place, score in ranked[:limit]]

    def _scores(self, word: str) -> dict[int, float]:
        """What one word of a question gives each tool: its best reading there."""
        best: dict[int, float] = {}
        for known, weight in self._readings(word):
            rarity = self._rarity(known)
            for place in self._places[known]:
                score = weight * rarity * self._frequency(known, place)
                if score > best.get(place, 0.0):
                    best[place] = score
        return best

    def _readings(self, word: str) -> list[tuple[str, float]]:
        """The words it may stand for. Guesses are made only for a word that no tool has."""
        if word in self._places:
            return [(word, 1.0)]
        if len(word) < 3:
            return []
        begun = [(one, BEGINNING) for one in self._places if one.startswith(word)]
        if begun:
            return begun
        slips = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
        near = [one for one in self._places if slips and distance(word, one, slips) <= slips]
        return [(one, SLIP) for one in near]

    def _rarity(self, word: str) -> float:
        having = len(self._places[word])
        return math.log(1 + (len(self._tools) - having + 0.5) / (having + 0.5))

    def _frequency(self, word: str, place: int) -> float:
        count = self._counts[place][word]
        length = self._lengths[place] / self._mean
        return count * (SATURATION + 1) / (count + SATURATION * (1 - LENGTH + LENGTH * length))


def _counts(one: ServerTool) -> dict[str, float]:
    """How much of each word a tool has, by where it stands."""
    tool = one.tool
    texts = {
        "name": tool.name,
        "server": one.server,
        "title": tool.title or "",
        "parameters": " ".join(_parameters(tool.input_schema)),
        "description": (tool.description or "")[:LONGEST],
    }
    found: dict[str, float] = {}
    for field, text in texts.items():
        for word, count in Counter(words(text)).items():
            # A word said often in one place says little more than said once.
            found[word] = found.get(word, 0.0) + WEIGHTS[field] * (1 + math.log(count))
    return found


def _parameters(schema: dict[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else ()


def distance(first: str, second: str, most: int) -> int:
    """Slips between two words (a letter wrong, missing, too many, or two swapped), up to
    ``most``; more than that is ``most + 1``."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row, oldest = row, [i], before
        for j, b in enumerate(second, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, oldest[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = above
    return min(row[-1], most + 1)
