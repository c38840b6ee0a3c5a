"""The synchronous faces are written by a tool; what is in the tree is what it writes."""

from __future__ import annotations

import ast

from tools import sync_face


def test_the_synchronous_faces_are_fresh() -> None:
    for path, face in sync_face.FACES.items():
        fresh = sync_face.tidy(face())
        assert path.read_text() == fresh, "run: python tools/sync_face.py"


SOURCE = ast.parse('''
class Client:
    async def brew(self, cup: str, *, sugar: int = 0) -> Tea:
        """Make tea."""
        return Tea(cup)

    def taste(self) -> bool: ...

    @property
    def colour(self) -> str:
        """Its colour."""
''')


def test_a_new_verb_would_be_carried_over() -> None:
    assert [
        line for line in sync_face.verbs(SOURCE, "Client", owner="Other").split("\n") if line
    ] == [
        "    brew: Final = blocking(Other.brew)",
        "    taste: Final = on_loop(Other.taste)",
        "    @property",
        "    def colour(self) -> str:",
        '        """Its colour."""',
        "        return self._inner.colour",
    ]
