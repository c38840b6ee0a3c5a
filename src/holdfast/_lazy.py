"""Names that a package offers and does not load before they are used (PEP 562).

This is loaded by whatever imports the package at all, so it imports next to nothing itself:
``typing`` alone would double the time of ``holdfast --help``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def lazily(
    package: str, homes: Mapping[str, Iterable[str]], parts: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    ``homes`` says which of its modules has which names; ``parts`` are modules that are
    themselves reached as attributes. What has been looked up once is found at once from then on.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    known = frozenset(parts)

    def find(name: str) -> Any:
        if name in home_of:
            found = getattr(_load(f"{package}.{home_of[name]}"), name)
        elif name in known:
            found = _load(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of, *known})

    return find, names


def _load(module: str) -> Any:
    __import__(module)
    return sys.modules[module]
