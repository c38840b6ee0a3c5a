"""Ways to log in, for ``connect(url, auth=…)``.

    from holdfast.auth import ClientCredentials, OAuth

`OAuth` and `Bearer` are in `holdfast` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast._core.auth.browser import browser_login
    from holdfast._core.auth.options import (
        Bearer, ClientCredentials, EnterpriseManaged, LoginRequest, OAuth, WorkloadIdentity,
    )

__all__ = [
    "Bearer", "ClientCredentials", "EnterpriseManaged", "LoginRequest", "OAuth",
    "WorkloadIdentity", "browser_login",
]

_HOMES = {
    "_core.auth.browser": ("browser_login",),
    "_core.auth.options": (
        "Bearer", "ClientCredentials", "EnterpriseManaged", "LoginRequest", "OAuth",
        "WorkloadIdentity",
    ),
}
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES, root="holdfast")
