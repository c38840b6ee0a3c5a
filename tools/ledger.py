"""Kill processes at every step of the ledger, and count what ran: ``make ledger``.

Workers in several processes want the same keys. Each key is wanted by some of them; each process is
killed (SIGKILL) again and again, before or after a random step: taking a lease, claiming, marking
as sent, settling, or while the server works. Killed workers are started again and go on. On Redis,
the server is killed and started meanwhile. At the end:

- no key ran twice, by what the servers wrote down themselves;
- everybody who wanted a key was told a result, an error, or "unknown";
- a result or an error is the one that the one run gave: none is invented.
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
from collections import Counter, defaultdict
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

STEPS = ("put", "get", "swap")
"""A lease is put; a record is read by those who wait, and claimed, marked and settled by swaps."""
MOMENTS = tuple((step, is_before) for step in STEPS for is_before in (True, False))
ENOUGH = 500
"""Keys with which a worker is killed at each of these moments, and while a server works."""
LIVES = 12
"""Lives of a worker that end by a kill; its last one is not disturbed."""


# The server: it writes down each run before it does anything else


def serve(runs: str, seed: str) -> None:
    """Be an MCP server on stdio with one tool; kill the caller now and then."""
    rng = random.Random(f"{seed} {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params", {})
        answer: dict[str, Any]
        match message["method"]:
            case "initialize":
                info = {"name": "counting", "version": "1"}
                answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                answer = {"result": {**answer, "serverInfo": info}}
            case "tools/list":
                tool = {"name": "run", "inputSchema": {"type": "object"}}
                answer = {"result": {"tools": [tool]}}
            case "tools/call":
                answer = run(runs, params, rng)
            case _:
                answer = {"error": {"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()


def run(runs: str, params: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    key, caller = params["arguments"]["key"], params["_meta"]["pid"]
    is_fatal = params["_meta"]["kill"] and rng.random() < 0.02
    kills = Path(runs).with_name("kills")
    if is_fatal and rng.random() < 0.5:
        append(kills, "before running")
        os.kill(caller, signal.SIGKILL)
    nonce = f"{rng.getrandbits(64):x}"
    append(runs, f"{key} {nonce}")
    if is_fatal:
        append(kills, "after running")
        os.kill(caller, signal.SIGKILL)
    number = int(key.rpartition("-")[2])
    if number % 10 == 3:
        return {"error": {"code": -32000, "message": nonce}}
    content = [{"type": "text", "text": nonce}]
    return {"result": {"content": content, "isError": number % 10 == 5}}


def append(path: str | Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def read_lines(path: Path) -> list[list[str]]:
    return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []


# The worker


class Plan(Struct):
    """What one run of the proof is about."""

    keys: int
    wanted: int
    processes: int
    folder: str
    store: str
    """``sqlite``, or the URL of a Redis."""
    seed: str


def open_store(plan: Plan) -> Any:
    from holdfast.stores import RedisStore, SqliteStore

    if plan.store == "sqlite":
        return SqliteStore(f"{plan.folder}/ledger.db")
    return RedisStore(plan.store, rest=0.2)


def killing(store: Any, rng: random.Random, me: int, life: int, folder: str) -> None:
    """Make a store kill this process before or after one of its steps, another in each life."""
    step, is_before = MOMENTS[(me + life) % len(MOMENTS)]
    left = rng.randrange(1, {"put": 2, "get": 4, "swap": 30}[step])
    original = getattr(store, step)

    def die() -> None:
        append(f"{folder}/kills", f"{'before' if is_before else 'after'} {step}")
        os.kill(os.getpid(), signal.SIGKILL)

    async def fatal(*words: Any) -> Any:
        nonlocal left
        left -= 1
        is_last = left == 0  # others come while this one waits
        if is_last and is_before:
            die()
        value = await original(*words)
        if is_last:
            die()
        return value

    if life < LIVES:
        setattr(store, step, fatal)


async def work(plan: Plan, me: int, life: int) -> None:
    """Want keys until each has an outcome; die on the way."""
    import holdfast

    rng = random.Random(f"{plan.seed} {me} {life}")
    store = open_store(plan)
    killing(store, rng, me, life, plan.folder)
    ledger = holdfast.Ledger(store, lease=2.0)
    outcomes = Path(plan.folder) / f"outcomes-{me}"
    told = {words[0] for words in read_lines(outcomes)}
    mine = [
        f"key-{number}"
        for number in range(plan.keys)
        if (me - number) % plan.processes < plan.wanted
    ]
    todo = [key for key in mine if key not in told]
    rng.shuffle(todo)
    command = [sys.executable, __file__, "--serve", f"{plan.folder}/runs", plan.seed]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            holdfast.connect(command, ledger=ledger, name="counting", when_down="wait")
        )
        meta = {"pid": os.getpid(), "kill": life < LIVES}

        async def want() -> None:
            while todo:
                key = todo.pop()
                append(outcomes, f"{key} {await outcome_of(client, key, meta)}")

        await asyncio.gather(*(want() for _ in range(4)))


async def outcome_of(client: Any, key: str, meta: dict[str, Any]) -> str:
    import holdfast

    while True:
        try:
            result = await client.call_tool("run", {"key": key}, once=key, meta=meta, timeout=60)
            return f"{'failure' if result.is_error else 'result'} {result.text}"
        except holdfast.OutcomeUnknown as error:
            return f"unknown {(error.data or {}).get('state')}"
        except holdfast.RpcError as error:
            return f"error {error.server_message}"
        except holdfast.HoldfastError as error:
            # The ledger is down, or another works on it: nothing was sent by this call.
            if error.outcome_unknown and not isinstance(error, holdfast.RequestTimeout):
                return "unknown call"
            await asyncio.sleep(0.05)


# The judge


def start_worker(plan: Plan, me: int, life: int) -> subprocess.Popen[bytes]:
    import msgspec

    text = msgspec.json.encode(plan).decode()
    command = [sys.executable, __file__, "--work", text, str(me), str(life)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def prove(plan: Plan, disturb: Any = None) -> Counter[str]:
    """Run the workers to their end; return what they were told, by kind."""
    lives = [0] * plan.processes
    running = {me: start_worker(plan, me, 0) for me in range(plan.processes)}
    kills = 0
    while running:
        time.sleep(0.02)
        if disturb is not None:
            disturb()
        for me, process in tuple(running.items()):
            if process.poll() is None:
                continue
            _, err = process.communicate()
            if process.returncode == 0:
                del running[me]
                continue
            if process.returncode != -signal.SIGKILL:
                raise SystemExit(f"worker {me} failed:\n{err.decode()}")
            kills += 1
            lives[me] += 1
            running[me] = start_worker(plan, me, lives[me])
    counts = judge(plan)
    counts["kills"] = kills
    return counts


def judge(plan: Plan) -> Counter[str]:
    """Compare what workers were told with what the servers wrote down."""
    folder, counts = Path(plan.folder), Counter[str]()
    runs: defaultdict[str, list[str]] = defaultdict(list)
    for key, nonce in read_lines(folder / "runs"):
        runs[key].append(nonce)
    twice = {key: nonces for key, nonces in runs.items() if len(nonces) > 1}
    if twice:
        raise SystemExit(f"ran twice: {twice}")
    told: defaultdict[str, set[str]] = defaultdict(set)
    for me in range(plan.processes):
        for key, kind, detail in read_lines(folder / f"outcomes-{me}"):
            counts[kind] += 1
            told[key].add(kind if kind == "unknown" else f"{kind} {detail}")
            if kind != "unknown" and runs.get(key) != [detail]:
                raise SystemExit(f"{key}: told {kind} {detail}, but ran {runs.get(key)}")
    wanted = plan.keys * plan.wanted
    if sum(counts.values()) != wanted:
        raise SystemExit(f"{sum(counts.values())} outcomes of {wanted}")
    if contradictions := {
        key: known for key, known in told.items() if len(known - {"unknown"}) > 1
    }:
        raise SystemExit(f"told different things: {contradictions}")
    counts["runs"] = len(runs)
    return counts


def check_kills(steps: Counter[str], keys: int) -> None:
    """Refuse a run of full size in which no worker was killed at one of the moments."""
    moments = [f"{'before' if is_before else 'after'} {step}" for step, is_before in MOMENTS]
    missing = [name for name in (*moments, "before running", "after running") if not steps[name]]
    if keys >= ENOUGH and missing:
        raise SystemExit(f"nobody was killed {', '.join(missing)}")


def disturbing(server: Any, rng: random.Random) -> Any:
    """Return what kills and starts a Redis every now and then."""
    state = {"next": time.monotonic() + 1.0, "down": False}

    def disturb() -> None:
        if time.monotonic() < state["next"]:
            return
        if state["down"]:
            server.start()
        else:
            server.stop()
        state["down"] = not state["down"]
        state["next"] = time.monotonic() + (rng.uniform(0.1, 0.8) if state["down"] else 2.0)

    return disturb


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--wanted", type=int, default=3, help="workers that want each key")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--store", choices=["sqlite", "redis", "both"], default="both")
    parser.add_argument("--seed", default="holdfast")
    options = parser.parse_args()
    stores = ("sqlite", "redis") if options.store == "both" else (options.store,)
    for store in stores:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-ledger-"))
            place, disturb = store, None
            if store == "redis":
                from tests.redis_server import DURABLE, RedisServer

                server = RedisServer(Path(folder), *DURABLE)
                server.start()
                stack.callback(server.stop)
                place, disturb = server.url, disturbing(server, random.Random(options.seed))
            sizes = (options.keys, options.wanted, options.processes)
            plan = Plan(*sizes, folder, place, options.seed)
            began = time.monotonic()
            counts = prove(plan, disturb)
            span = time.monotonic() - began
            told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
            print(f"{store}: no key ran twice: {told} in {span:.0f} s")
            steps = Counter(" ".join(words) for words in read_lines(Path(folder) / "kills"))
            places = ", ".join(f"{count} {step}" for step, count in sorted(steps.items()))
            print(f"  killed: {places}", flush=True)
            check_kills(steps, options.keys)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:4])
    elif sys.argv[1:2] == ["--work"]:
        import msgspec

        asyncio.run(work(msgspec.json.decode(sys.argv[2], type=Plan), *map(int, sys.argv[3:5])))
    else:
        main()
