"""Arguments that were left out."""

from __future__ import annotations

import copy
import pickle

import pytest

from holdfast.handles import UNSET, Unset
from holdfast.handles.results import given


@pytest.mark.req("H3")
def test_what_is_left_out_is_not_sent_and_none_is() -> None:
    assert given({"a": UNSET, "b": None, "c": 0, "d": ""}) == {"b": None, "c": 0, "d": ""}


def test_unset_is_false_and_one_of_a_kind() -> None:
    assert not UNSET
    assert repr(UNSET) == "UNSET"
    assert copy.deepcopy(UNSET) is pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert list(Unset) == [UNSET]
