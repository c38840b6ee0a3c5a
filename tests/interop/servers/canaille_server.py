"""An authorization server on Canaille (PyPI), in memory: one person, open registration."""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import sys

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from werkzeug.serving import make_server

port = int(sys.argv[1])
app = create_app(
    {
        "SECRET_KEY": "s" * 32,
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"DATABASE": "memory", "EMAIL_CONFIRMATION": False},
        "CANAILLE_OIDC": {"DYNAMIC_CLIENT_REGISTRATION_OPEN": True, "REQUIRE_NONCE": False},
    }
)
with app.app_context():
    person = models.User(
        user_name="ada",
        formatted_name="Ada Lovelace",
        family_name="Lovelace",
        emails=["ada@example.com"],
        password="correct horse",
    )
    Backend.instance.save(person)
server = make_server("127.0.0.1", port, app)
print("ready", flush=True)
server.serve_forever()
