"""The daemon: servers that run for all programs of one user, each spoken to by its own relay.

`life` starts, finds and stops it; `server` accepts clients; `shared_server` is one server and the
clients that share it. What a client does with it is in ``_core/transports/shared.py``.
"""
