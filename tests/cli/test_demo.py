"""``holdfast demo``."""

from __future__ import annotations

from holdfast.cli.main import VERBS
from tests.cli.conftest import Cli


def test_the_demonstration_runs(process: Cli) -> None:
    assert "demo" in VERBS
    done = process("demo")
    assert done.code == 0, done.err
    assert done.out
