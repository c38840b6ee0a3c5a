"""The environment of a server: what every program needs, and no credentials."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final

# A server is somebody else's program. It is given what programs need to run at all, and where the
# proxies and certificates of this machine are. Launchers (``npx``, ``uvx``, ``docker`` …) are given
# the settings of package managers as well: without its index or cache a launcher may not find the
# server.
#
# Credentials stand in many of these variables: ``HTTPS_PROXY=http://me:secret@proxy``,
# ``PIP_INDEX_URL`` with a password, ``UV_INDEX_ACME_PASSWORD``, ``npm_config__authToken``,
# ``npm_config_//registry.example.org/:_authToken``. They are never passed unless the user names the
# variable in ``inherit_env``.
#
# An address with credentials is passed without them, rather than not at all. An attack: without
# ``PIP_INDEX_URL``, a package manager looks for the company's own package in the public index,
# where anybody may have registered its name (dependency confusion). Without the password it is
# refused by the right index, or finds the password in its own store.

BASIC_ENVIRONMENT: Final = (
    "HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER XDG_CACHE_HOME "
    "XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME"
)
"""Variables that every program expects."""
NETWORK_ENVIRONMENT: Final = (
    "ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY all_proxy http_proxy https_proxy no_proxy "
    "CURL_CA_BUNDLE GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA REQUESTS_CA_BUNDLE "
    "SSL_CERT_DIR SSL_CERT_FILE"
)
"""Proxies and certificate authorities: the way to the network."""
RUNTIME_ENVIRONMENT: Final = (
    "BUN_INSTALL COREPACK_HOME DENO_DIR FNM_DIR NVM_BIN NVM_DIR PNPM_HOME VOLTA_HOME"
)
"""Folders in which the ``node`` and its kin that are on the PATH look for themselves."""
LAUNCHER_ENVIRONMENT: Final = (
    "DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY "
    "NPM_CONFIG_* PIPX_* PIP_* UV_* npm_config_*"
)
"""The settings of package managers, for launchers alone; ``*`` is a wildcard."""
WINDOWS_ENVIRONMENT: Final = (
    "ALLUSERSPROFILE APPDATA COMMONPROGRAMFILES COMMONPROGRAMFILES(X86) COMPUTERNAME COMSPEC "
    "HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATHEXT PROCESSOR_ARCHITECTURE "
    "PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 PSMODULEPATH PUBLIC PYTHONIOENCODING "
    "PYTHONUTF8 SYSTEMDRIVE SYSTEMROOT TEMP TMP USERDOMAIN USERNAME USERPROFILE WINDIR"
)
"""Variables that programs on Windows expect beside these; without some they do not start."""
PASSED_ENVIRONMENT: Final = tuple(
    f"{BASIC_ENVIRONMENT} {NETWORK_ENVIRONMENT} {RUNTIME_ENVIRONMENT}".split()
)
"""The variables that every server inherits."""
LAUNCHERS_ENVIRONMENT: Final = tuple(LAUNCHER_ENVIRONMENT.split())
"""The variables that launchers inherit beside these."""
_PASSED: Final = frozenset(PASSED_ENVIRONMENT)
_HARMLESS: Final = frozenset(name for name in _PASSED if not name.lower().endswith("proxy"))
_WINDOWS: Final = frozenset(WINDOWS_ENVIRONMENT.split())
_PREFIXES: Final = tuple(name.removesuffix("*") for name in LAUNCHERS_ENVIRONMENT)
# Patterns are compiled when they are needed: most commands are no launchers, and have no proxy.
_SECRET_NAME: Final = (
    r"(?i)auth(?!or)|token|passw|passphrase|secret|credential|publish|otp$|username|_key$|:key$|"
    r"npm_config_(key|cert)$|api_?key|private|cookie|session|netrc"
)
_SCHEME: Final = r"([A-Za-z][\w+.-]*:)?//"
_BARE_USER_INFO: Final = r"[^\s/@:]+:[^\s/@]+@"
_USER_INFO: Final = r"([\w+.-]*:)?//([^/\s?#]*)@"
_ODD_AUTHORITY: Final = r"//(?!\[)[^/\s?#:]*:(?!\d*(?:[/\s?#,;]|$))"
_SECRET_QUERY: Final = r"(?i)[?&;][^=&;\s]*(auth|token|passw|secret|key|sig|credential)[^=&;\s]*="


def environment(
    extra: Mapping[str, str],
    inherit: Iterable[str] | bool,
    ours: Mapping[str, str],
    *,
    launcher: bool = False,
    platform: str = sys.platform,
) -> dict[str, str]:
    """Return the environment of a server.

    Args:
        extra: Variables to set; they win over inherited ones.
        inherit: Names to pass on as they are, or True for all.
        ours: The environment to take them from.
        launcher: The server is started by a package manager.
        platform: On Windows names have no case, and programs need some more variables.
    """
    names = frozenset(ours if inherit is True else inherit or ())
    if platform == "win32":
        return _windows_environment(extra, names, ours, launcher)
    allowed, trusted = _PASSED | names, _HARMLESS | names
    candidates = [name for name in ours if name in allowed]
    if launcher:
        candidates += [name for name in ours if name.startswith(_PREFIXES) and name not in allowed]
    passed: dict[str, str] = {}
    for name in candidates:
        value: str | None = ours[name]
        if name not in trusted:
            value = _without_credentials(name, ours[name])
        # CVE-2014-6271: old versions of bash run functions found in values that begin with "()".
        if value is not None and not value.startswith("()"):
            passed[name] = value
    return {**passed, **extra}


def _windows_environment(
    extra: Mapping[str, str], names: frozenset[str], ours: Mapping[str, str], launcher: bool
) -> dict[str, str]:
    """Return the same for Windows: in capitals, with what its programs need."""
    names = frozenset(name.upper() for name in names) | _WINDOWS
    return environment(_upper(extra), names, _upper(ours), launcher=launcher, platform="")


def _upper(variables: Mapping[str, str]) -> dict[str, str]:
    return {name.upper(): value for name, value in variables.items()}


def _without_credentials(name: str, value: str) -> str | None:
    """Return the value of a variable without user info; None if it is a credential as a whole."""
    if name.lower().endswith("proxy"):
        # An address and nothing behind it, with or without a scheme: what is before the last "@"
        # is user info, however badly it is escaped.
        scheme = re.match(_SCHEME, value)
        return (scheme[0] if scheme and "@" in value else "") + value.rpartition("@")[2]
    if re.search(_SECRET_NAME, name) or "PRIVATE KEY" in value:
        return None
    return _without_user_info(value)


def _without_user_info(value: str) -> str | None:
    """Return a value without the user info of its addresses; None if that cannot be taken out."""
    if "//" not in value and "@" not in value:
        return value
    value = re.sub(_USER_INFO, _keep_login_name, value)
    if "//" not in value:
        return None if re.search(_BARE_USER_INFO, value) else value
    # A password with an unescaped "/" ends the address for some readers, and not for others.
    if re.search(_ODD_AUTHORITY, value) or re.search(_SECRET_QUERY, value):
        return None
    return value


def _keep_login_name(address: re.Match[str]) -> str:
    """Drop the user info of an address, but for the name in ``ssh://me@host``."""
    scheme, user_info = address[1] or "", address[2]
    is_ssh = scheme.lower().rpartition("+")[2] == "ssh:" and ":" not in user_info
    return f"{scheme}//{user_info}@" if is_ssh else f"{scheme}//"
