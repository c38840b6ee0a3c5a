"""Run the comparison: ``python benchmarks/peers/run.py [--quick] [--rows a,b] [--only x,y] …``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from benchmarks.peers.main import main

    sys.exit(main())
