"""``python -m holdfast.demo [-v]``: the story."""

from __future__ import annotations

import sys

from holdfast.demo.story import main

if __name__ == "__main__":
    options = sys.argv[1:]
    if set(options) - {"-v", "--verbose"}:
        sys.exit("usage: python -m holdfast.demo [-v]")
    sys.exit(main(verbose=bool(options)))
