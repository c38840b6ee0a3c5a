"""The examples for model providers, each with the provider's own package, against its interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.provider_stub import serving
from tests.frameworks.running import installed
from tests.interop.install import PROJECT

EXAMPLES = PROJECT / "examples" / "providers"


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with the packages of all providers."""
    return installed("providers") / "bin" / "python"


@pytest.mark.req("N4")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("with_*.py")), ids=lambda path: path.stem)
def test_an_example_for_a_provider_answers_by_a_tool(python: Path, path: Path) -> None:
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "none")
    # The example's server is found by PATH: the Python that these tests run on.
    folder = os.path.dirname(sys.executable)
    with serving() as url:
        done = subprocess.run(
            [python, path],
            env={
                **os.environ,
                **keys,
                "ANTHROPIC_BASE_URL": url,
                "GOOGLE_GEMINI_BASE_URL": url,
                "OPENAI_BASE_URL": f"{url}/v1",
                "PATH": os.pathsep.join([folder, os.environ["PATH"]]),
                "PYTHONPATH": str(PROJECT / "src"),
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "It is 42.\n"), done.stderr


@pytest.mark.req("N4")
def test_the_examples_for_providers_are_short() -> None:
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 35, path.name
