"""Measure hostile schemas: print those that hold the interpreter longest.

make hostile ARGS="--seed 7 --count 5000"
"""

from __future__ import annotations

import argparse
import time
from heapq import nlargest
from itertools import chain

from holdfast.schema.explain import Unusable
from holdfast.schema.validate import Checker
from tests.schema import hostile
from tests.schema.hostile import Case

REFERENCE = 700_000
"""Turns of a loop that take 50 ms on the machine that the bounds were set on."""

SHORT = 0.01
"""Seconds that are within the bound on any machine."""


def cost(case: Case) -> float:
    """Return the processor time of compiling and checking, as a client does: 1 is 50 ms."""
    text = case.text
    began = time.process_time()
    try:
        Checker(case.schema, fills=True).faults(case.value, text)
    except Unusable:
        pass
    taken = time.process_time() - began
    return taken / (0.05 if taken < SHORT else _reference())


def _reference() -> float:
    """Return the processor time of the loop on this machine, now."""
    turns = REFERENCE // 10
    began, total = time.process_time(), 0
    for turn in range(turns):
        total += turn * turn % 7
    return (time.process_time() - began) * REFERENCE / turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="of random schemas")
    options = parser.parse_args()
    families = chain.from_iterable(family() for family in hostile.FAMILIES)
    cases = chain(families, hostile.random_cases(options.seed, options.count))
    slowest = nlargest(15, ((min(cost(case), cost(case)), case.name) for case in cases))
    for taken, name in slowest:
        print(f"{taken * 50:6.1f} ms  {name}")


if __name__ == "__main__":
    main()
