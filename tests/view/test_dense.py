"""Bytes as text inside of a page: dense, and without markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.view.dense import LETTERS, dense
from tests.view.sample import from_dense


@pytest.mark.req("W2")
@given(
    st.binary(max_size=200)
    | st.integers(0, 200).map(bytes)
    | st.integers(0, 99).map(b"\xff".__mul__)
)
def test_bytes_come_back_and_no_letter_can_be_markup(data: bytes) -> None:
    text = dense(data)
    assert from_dense(text) == data
    assert not set(text) & set("<>&")
    assert text.isascii()


@pytest.mark.req("W2")
def test_it_is_denser_than_base64() -> None:
    assert len(LETTERS) == 91
    assert len(dense(bytes(range(256)) * 100)) < 25_600 * 1.232
