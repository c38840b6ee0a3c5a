"""The daemon in the background, as `life.start` runs it: seconds idle, seconds to linger."""

import sys

from holdfast.daemon.life import run
from holdfast.errors import HoldfastError

if __name__ == "__main__":
    try:
        run(idle=float(sys.argv[1]), linger=float(sys.argv[2]), detached=True)
    except HoldfastError as error:
        sys.exit(str(error))
