"""What the tests of hosts' files share."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.config.hosts import HOSTS
from holdfast.hosts.document import HostDocument, HostFile, HostServer
from holdfast.hosts.plan import FilePlan, plan_install, plan_uninstall

HEAD = ("/opt/my tools/holdfast", "serve", "--inherit-env", "--")


def head(server: HostServer) -> Sequence[str]:
    return HEAD


def installed(host: str, file: str, data: bytes | None, *names: str) -> FilePlan:
    return plan_install(HostFile(HOSTS[host], file, data), names, head)


def uninstalled(
    host: str,
    file: str,
    data: bytes | None,
    *names: str,
    backups: Sequence[bytes | None] = (),
    added: Sequence[tuple[str, ...]] = (),
) -> FilePlan:
    return plan_uninstall(HostFile(HOSTS[host], file, data), names, backups, added)


def servers(host: str, file: str, data: bytes | None) -> dict[str, HostServer]:
    document = HostDocument(HostFile(HOSTS[host], file, data))
    return {server.label: server for server in document.servers()}
