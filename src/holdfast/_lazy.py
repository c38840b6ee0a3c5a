"""Names that a package offers and does not load before they are used (PEP 562).

This is loaded by whatever imports the package at all, so it imports next to nothing itself:
``typing`` alone would double the time of ``holdfast --help``. Even ``__future__`` takes longer than
printing it.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any


def lazily(
    package: str,
    homes: "Mapping[str, Collection[str]]",
    parts: "Collection[str]" = (),
    root: str = "",
) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """A package's ``__getattr__`` and ``__dir__``.

    ``homes`` says which of its modules has which names; ``parts`` are modules that are
    themselves reached as attributes; ``root`` is the package that homes are in, by default this
    one. What has been looked up once is found at once from then on.
    """

    def find(name: str) -> "Any":
        for home, names in homes.items():
            if name in names:
                value = getattr(_load(f"{root or package}.{home}"), name)
                break
        else:
            if name not in parts:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            value = _load(f"{package}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *parts}.union(*homes.values()))

    return find, names


def _load(module: str) -> "Any":
    __import__(module)
    return sys.modules[module]
