"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--rows a,b] [--json FILE] …``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from benchmarks.main import main

    sys.exit(main())
