"""The fuzz targets over their corpus, and over as many new inputs as a test may take.

``make fuzz`` runs the same targets for as long as one likes; what it finds goes into the corpus.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.inputs import corpus, inputs
from tests.fuzz.targets import TARGETS, cut
from tests.rows import rows

KNOWN = [(target, path) for target in TARGETS for path in corpus(target)]


@rows(("target", "path"), KNOWN, ids=lambda part: getattr(part, "name", part))
def test_the_corpus_breaks_nothing(target: str, path: Path) -> None:
    TARGETS[target](path.read_bytes())


@pytest.mark.req("V1")
@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_new_inputs_break_nothing(target: str, data: st.DataObject) -> None:
    TARGETS[target](data.draw(inputs(target)))


@given(st.binary(max_size=60))
def test_a_cut_loses_nothing(data: bytes) -> None:
    count = data[0] % 9 if data else 0
    assert b"".join(cut(data)) == data[count + 1 :]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_corpus(target: str) -> None:
    assert len(corpus(target)) >= 5
