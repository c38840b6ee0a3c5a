"""The official conformance suite against the client, every scenario.

Each run is judged by the suite's own checks and by the client's exit status. The suite comes
from npm, with a Node of its own where the machine's is too old for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "conformance"
PACKAGES = ("node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
PAGE = ROOT / "docs" / "reference" / "conformance.md"
CLIENT = Path(__file__).with_name("client.py")

RUNS = [
    ("initialize", "2025-06-18"),
    ("initialize", "2025-11-25"),
    ("tools_call", "2025-06-18"),
    ("tools_call", "2025-11-25"),
    ("tools_call", "2026-07-28"),
    ("elicitation-sep1034-client-defaults", "2025-11-25"),
    ("sse-retry", "2025-11-25"),
    ("request-metadata", "2026-07-28"),
    ("sep-2322-client-request-state", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("json-schema-ref-no-deref", "2026-07-28"),
    ("json-schema-2020-12-preservation", "2025-11-25"),
    ("json-schema-2020-12-preservation", "2026-07-28"),
]


_FROM_2025_11_25 = ("2025-11-25", "2026-07-28")
_FROM_2025_06_18 = ("2025-06-18", *_FROM_2025_11_25)
_2026_07_28 = ("2026-07-28",)
_2025_03_26 = ("2025-03-26",)

AUTHORIZATION = {
    "metadata-default": _FROM_2025_11_25,
    "metadata-var1": _FROM_2025_11_25,
    "metadata-var2": _FROM_2025_11_25,
    "metadata-var3": _FROM_2025_11_25,
    "basic-cimd": _FROM_2025_11_25,
    "scope-from-www-authenticate": _FROM_2025_11_25,
    "scope-from-scopes-supported": _FROM_2025_11_25,
    "scope-omitted-when-undefined": _FROM_2025_11_25,
    "scope-step-up": _FROM_2025_11_25,
    "scope-retry-limit": _FROM_2025_11_25,
    "token-endpoint-auth-basic": _FROM_2025_06_18,
    "token-endpoint-auth-post": _FROM_2025_06_18,
    "token-endpoint-auth-none": _FROM_2025_06_18,
    "pre-registration": _FROM_2025_11_25,
    "2025-03-26-oauth-metadata-backcompat": _2025_03_26,
    "2025-03-26-oauth-endpoint-fallback": _2025_03_26,
    "resource-mismatch": _2026_07_28,
    "offline-access-scope": _2026_07_28,
    "offline-access-not-supported": _2026_07_28,
    "authorization-server-migration": _2026_07_28,
    "iss-supported": _2026_07_28,
    "iss-not-advertised": _2026_07_28,
    "iss-supported-missing": _2026_07_28,
    "iss-wrong-issuer": _2026_07_28,
    "iss-unexpected": _2026_07_28,
    "iss-normalized": _2026_07_28,
    "metadata-issuer-mismatch": _2026_07_28,
    "client-credentials-jwt": _FROM_2025_11_25,
    "client-credentials-basic": _FROM_2025_11_25,
    "enterprise-managed-authorization": _FROM_2025_11_25,
    "dpop": _FROM_2025_11_25,
    "dpop-nonce": _FROM_2025_11_25,
    "wif-jwt-bearer": _FROM_2025_11_25,
}
"""Extensions stand on no revision's timeline: they are run at the two that can carry them."""
RUNS += [(f"auth/{name}", version) for name, found in AUTHORIZATION.items() for version in found]
SKILLS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")
RUNS += [(f"sep-2640-client-{name}", "2026-07-28") for name in SKILLS]


@pytest.fixture(scope="session")
def suite() -> Path:
    """The suite's command, installed once."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the conformance suite comes from there")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = CACHE / "installed"
        if not stamp.exists() or stamp.read_text() != " ".join(PACKAGES):
            command = [
                "npm",
                "install",
                "--silent",
                "--no-audit",
                "--prefix",
                str(CACHE),
                *PACKAGES,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"npm could not install the suite: {done.stderr[-500:]}")
            stamp.write_text(" ".join(PACKAGES))
    return CACHE / "node_modules" / ".bin" / "conformance"


def passes(suite: Path, scenario: str, version: str, command: str, out: Path) -> str:
    """Run a scenario; empty if it is passed, else what stands against that.

    Some scenarios have no check that fails for a client that never comes: a pass needs one
    that succeeded, too.
    """
    path = f"{CACHE / 'node_modules' / 'node' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    words = [str(suite), "client", "--command", command, "--scenario", scenario]
    done = subprocess.run(
        [*words, "--spec-version", version, "--force", "-o", str(out)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    (found,) = out.rglob("checks.json")
    checks = json.loads(found.read_text())
    against = [
        f"{check['status']} {check['id']}: {check.get('errorMessage', '')}"
        for check in checks
        if check["status"] not in ("SUCCESS", "SKIPPED", "INFO")
    ]
    if not any(check["status"] == "SUCCESS" for check in checks):
        against.append("no check succeeded")
    if done.returncode != 0:
        against.append(f"exit status {done.returncode}: {done.stdout[-1500:]}")
    return "\n".join(against)


@pytest.mark.hang(400)
@pytest.mark.req("X2", "V3", "A1", "K2")
@pytest.mark.parametrize(("scenario", "version"), RUNS)
def test_a_scenario_is_passed(suite: Path, scenario: str, version: str, tmp_path: Path) -> None:
    assert passes(suite, scenario, version, f"{sys.executable} {CLIENT}", tmp_path) == ""


@pytest.mark.hang(400)
@pytest.mark.parametrize(("scenario", "version"), RUNS)
def test_a_client_that_does_nothing_passes_nothing(
    suite: Path, scenario: str, version: str, tmp_path: Path
) -> None:
    assert passes(suite, scenario, version, shutil.which("true") or "true", tmp_path)


def test_there_are_75_runs_and_56_of_them_of_authorization() -> None:
    assert len(RUNS) == 75
    assert len([scenario for scenario, _ in RUNS if scenario.startswith("auth/")]) == 56


def test_the_page_has_every_scenario_with_its_score(suite: Path) -> None:
    path = f"{CACHE / 'node_modules' / 'node' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    listed = subprocess.run(
        [str(suite), "list", "--client"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = dict(re.findall(r"^  - (\S+) \[([^\]]*)\]", listed, re.M))
    wanted = {
        (name, ", ".join(revisions.split(",")), "passed" if _runs(name) else "not yet")
        for name, revisions in known.items()
    }
    rows = re.findall(r"^\| `(\S+)` \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(), re.M)
    assert set(rows) == wanted
    for name, revisions in known.items():
        if revisions != "extension":
            assert _runs(name) in ([], revisions.split(",")), "run it at every revision it has"


def _runs(name: str) -> list[str]:
    return [version for scenario, version in RUNS if scenario == name]
