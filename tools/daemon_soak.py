"""Many hosts on one daemon while it, its servers and the hosts are killed at random.

``python -m tools.daemon_soak [--hosts 50] [--seconds 60] [--connects 10000]``. It fails if hosts
that share 5 servers have more than 5 processes, if a call waits beyond its time, if anything is
left 5 s after the end, or if the daemon grows with the number of connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import holdfast
from holdfast import Backoff, HoldfastError
from holdfast.daemon import life

SERVERS = 5
TIMEOUT = 10.0
"""Seconds that each call has."""
SLACK = 3.0
"""Seconds beyond that, besides those without a processor."""
MOST_GROWTH = 8 * 1024 * 1024
CODE = "from tools.daemon_soak import serve; serve()"


def serve() -> None:
    """Be one of the servers."""
    from holdfast._core.serve import stdio
    from holdfast._core.server.catalog import Catalog, Offered
    from holdfast._core.server.request import text_result
    from holdfast._core.server.server import Server

    catalog = Catalog()
    definition = {"name": "pid", "inputSchema": {"type": "object"}}
    catalog.tools["pid"] = Offered(definition, lambda *_: text_result(str(os.getpid())))
    stdio.run(Server("soak", catalog.handlers(), capabilities=lambda: {"tools": {}}))


def client(number: int, mark: str) -> holdfast.Client:
    """Return a client of one of the servers, through the daemon."""
    command = [sys.executable, "-c", CODE, mark, str(number)]
    options: Any = {"backoff": Backoff(first=0.1, max=1), "inherit_env": ["PYTHONPATH"]}
    return holdfast.connect(command, shared=True, when_down="wait", **options)


class Starved:
    """Counts the seconds for which this process was not given a processor."""

    STEP = 0.05

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._before = 0.0
        self._due = self._loop.time()

    @property
    def seconds(self) -> float:
        """Those until now, also if this is asked before the watch has had its turn."""
        return self._before + max(0.0, self._loop.time() - self._due)

    async def watch(self) -> None:
        while True:
            self._due = self._loop.time() + 2 * self.STEP
            await asyncio.sleep(self.STEP)
            self._before = self.seconds


async def be_host(mark: str, seed: int) -> None:
    """Call all servers until stdin ends; print what happened."""
    loop, plan = asyncio.get_running_loop(), random.Random(seed)
    counts, longest, starved = Counter[str](), 0.0, Starved()
    watching = loop.create_task(starved.watch())
    ended = asyncio.Event()
    loop.add_reader(0, ended.set)
    clients = [client(number, mark) for number in range(SERVERS)]
    first = True
    while not ended.is_set():
        for each in plan.sample(clients, SERVERS):
            began, before = loop.time(), starved.seconds
            try:
                await each.call_tool("pid", timeout=TIMEOUT, total_timeout=TIMEOUT)
                counts["ok"] += 1
            except HoldfastError as error:
                counts[error.kind] += 1
            longest = max(longest, loop.time() - began - (starved.seconds - before))
        if first:
            print("ready", flush=True)
            first = False
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), plan.uniform(0.05, 0.5))
    watching.cancel()
    await asyncio.gather(*(each.close() for each in clients))
    print(json.dumps({"counts": counts, "longest": longest}), flush=True)


def marked(mark: str, *, with_hosts: bool = True) -> list[int]:
    """Return the processes that have the mark on their command line: servers, and hosts."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_host = b"host" in words
            if mark.encode() in words and (with_hosts or not is_host):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


class Soak:
    """Hosts, a daemon, and what goes wrong."""

    def __init__(self, hosts: int, mark: str, plan: random.Random) -> None:
        self.mark, self.plan = mark, plan
        self.faults: list[str] = []
        self.kills: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.longest = 0.0
        self.daemon = life.start()[0].pid
        self.hosts = [self.new_host(seed) for seed in range(hosts)]

    def new_host(self, seed: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tools.daemon_soak", "host", self.mark, str(seed)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, **pipes)

    def check_sharing(self) -> None:
        for host in self.hosts:
            assert host.stdout is not None
            if host.stdout.readline() != "ready\n":
                self.faults.append("a host could not make its calls")
        servers = marked(self.mark, with_hosts=False)
        print(f"{len(self.hosts)} hosts x {SERVERS} servers: {len(servers)} server processes")
        if len(servers) != SERVERS:
            self.faults.append(f"{len(servers)} server processes, not {SERVERS}")

    def kill_something(self) -> None:
        victim = self.plan.choice(("daemon", "server", "server", "host"))
        self.kills[victim] += 1
        if victim == "daemon":
            self.kill(self.daemon)
            if self.plan.random() < 0.8:
                with suppress(HoldfastError):
                    self.daemon = life.start()[0].pid
        elif victim == "server":
            servers = marked(self.mark, with_hosts=False)
            if servers:
                self.kill(self.plan.choice(servers))
        else:
            host = self.hosts.pop(self.plan.randrange(len(self.hosts)))
            host.kill()
            host.communicate()
            self.hosts.append(self.new_host(self.plan.randrange(10**6)))

    def kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        for host in self.hosts:
            assert host.stdin is not None
            with suppress(BrokenPipeError):
                host.stdin.close()
            host.stdin = None
        for host in self.hosts:
            try:
                out, _ = host.communicate(timeout=TIMEOUT + 60)
                outcome = json.loads(out.splitlines()[-1])
            except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
                host.kill()
                self.faults.append(f"a host did not end: {error!r}")
                continue
            self.calls.update(outcome["counts"])
            self.longest = max(self.longest, outcome["longest"])
        life.stop()
        until = time.monotonic() + 5
        while (left := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.05)
        print(
            f"killed: {dict(self.kills)}; calls: {dict(self.calls)}; longest {self.longest:.1f} s"
        )
        if left:
            self.faults.append(f"{len(left)} processes are left")
        if self.longest > TIMEOUT + SLACK:
            self.faults.append(f"a call of {TIMEOUT:g} s waited {self.longest:.1f} s")
        if not self.calls["ok"]:
            self.faults.append("no call succeeded")


async def measure_memory(connects: int, mark: str) -> str:
    """Connect very often; return what is wrong with the daemon's memory, or nothing."""
    pid = (await asyncio.to_thread(life.start))[0].pid

    async def connect(times: int) -> None:
        for _ in range(times):
            async with client(0, mark) as each:
                await each.call_tool("pid", timeout=60)

    def resident() -> int:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    lanes = 10
    await asyncio.gather(*(connect(connects // 10 // lanes) for _ in range(lanes)))
    before, files = resident(), len(os.listdir(f"/proc/{pid}/fd"))
    await asyncio.gather(*(connect(connects // lanes) for _ in range(lanes)))
    growth, leaked = resident() - before, len(os.listdir(f"/proc/{pid}/fd")) - files
    await asyncio.to_thread(life.stop)
    print(f"{connects} connects: {growth / 1024:+.0f} KiB, {leaked:+d} descriptors")
    if growth > MOST_GROWTH or leaked > 20:
        return f"{connects} connects took {growth} bytes and {leaked} descriptors"
    return ""


def main(words: list[str]) -> int:
    """Run the soak."""
    if words[:1] == ["host"]:
        asyncio.run(be_host(words[1], int(words[2])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connects", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(words)
    os.environ["PYTHONPATH"] = os.getcwd()
    os.environ[life_timeout()] = "5"
    with tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = os.environ["XDG_STATE_HOME"] = folder
        mark = f"soak-{os.getpid()}"
        soak = Soak(options.hosts, mark, random.Random(options.seed))
        try:
            soak.check_sharing()
            until = time.monotonic() + options.seconds
            while time.monotonic() < until:
                time.sleep(soak.plan.uniform(0.1, 1.0))
                soak.kill_something()
        finally:
            soak.end()
        if fault := asyncio.run(measure_memory(options.connects, mark)):
            soak.faults.append(fault)
    for fault in soak.faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    return bool(soak.faults)


def life_timeout() -> str:
    """Return the variable for the patience with the daemon: kills, not slowness, are tried here."""
    from holdfast._core.transports.daemon_socket import VARIABLE

    return VARIABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
