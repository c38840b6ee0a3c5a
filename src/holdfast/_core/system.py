"""Which branches of the code this process takes, where systems differ.

Linux has more than POSIX asks for: descriptors of processes, files without a name, ``/proc``. Every
use of them has another branch for the systems without, and `HAS_LINUX` decides. Developers set
``HOLDFAST_PLAIN_POSIX=1`` to run the other branches on Linux, as the tests in CI do.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

HAS_LINUX: Final = sys.platform == "linux" and os.environ.get("HOLDFAST_PLAIN_POSIX") != "1"
"""Whether to use what only Linux has."""
