"""Problems say where."""

from __future__ import annotations

from holdfast.config import Problem
from holdfast.config.problems import visible


def test_a_problem_names_file_server_and_field() -> None:
    problem = Problem(file="/f.json", server="git", field="env.TOKEN", message="is not set")
    assert str(problem) == "/f.json: server 'git': env.TOKEN: is not set"
    assert str(Problem(file="/f.json", message="is gone")) == "/f.json: is gone"


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert visible("naïve 日本 ok") == "naïve 日本 ok"
    assert visible("a\x1b[2J\nb\u202ec") == "a\\x1b[2J\\nb\\u202ec"
