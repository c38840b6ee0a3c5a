"""Measure hostile schemas: print those that hold the interpreter longest.

make hostile ARGS="--seed 7 --count 5000"
"""

from __future__ import annotations

import argparse
import time
from heapq import nlargest
from itertools import chain

from holdfast.schema.faults import Unusable
from holdfast.schema.validate import Checker
from tests.schema import hostile
from tests.schema.hostile import Case

SHORT = 0.01
"""Seconds that need no second measurement."""


def cost(case: Case) -> float:
    """Return the least time of compiling and checking, as a client does."""
    text = case.text
    taken = _once(case, text)
    return taken if taken < SHORT else min(taken, *(_once(case, text) for _ in range(3)))


def _once(case: Case, text: bytes) -> float:
    """Return the time of this thread alone: others run beside it, and it may have to wait."""
    began = time.thread_time()
    try:
        Checker(case.schema, fills=True).faults(case.value, text)
    except Unusable:
        pass
    return time.thread_time() - began


def _loop() -> float:
    """Return the time of a loop that took 50 ms on the machine that the bounds were set on."""
    began, total = time.thread_time(), 0
    for turn in range(700_000):
        total += turn * turn % 7
    return time.thread_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="of random schemas")
    options = parser.parse_args()
    families = chain.from_iterable(family() for family in hostile.FAMILIES)
    cases = chain(families, hostile.random_cases(options.seed, options.count))
    before = _loop()
    slowest = nlargest(15, ((cost(case), case.name) for case in cases))
    print(f"{(before + _loop()) * 500:6.1f} ms  a loop that takes 50 where the bounds were set")
    for taken, name in slowest:
        print(f"{taken * 1000:6.1f} ms  {name}")


if __name__ == "__main__":
    main()
