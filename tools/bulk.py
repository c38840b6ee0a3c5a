"""Prove ``holdfast map``: killed at random and resumed, each row is in the output once.

    make bulk ARGS="--rows 100000 --kills 5"

It also measures: the memory of the process early and late, and the rate beside a bare loop of calls
with the same client and the same concurrency, turn by turn. ``--cpu`` counts rows in a second of
CPU time, of client and server together, for a machine that is not idle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import holdfast

SERVER = [sys.executable, "-m", "holdfast.demo.server"]
JOBS = 32
ROUNDS = 3
LEAST_RATE = 0.7
MOST_GROWTH = 1.25


def write_rows(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            file.write(f'{{"a": {number}, "b": 1}}\n')


def started(rows: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "holdfast", "map", "add", str(rows), "-o", str(out)]
    command += ["-j", str(JOBS), "--resume", "--", *SERVER]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_at_random(rows: Path, out: Path, count: int, kills: int, seed: int) -> None:
    """Kill the map after a random part of the rows, again and again; then let it end."""
    chance = random.Random(seed)
    size = 70 * count
    marks = sorted(chance.randrange(size * 9 // 10) for _ in range(kills))
    for mark in marks:
        process = started(rows, out)
        while process.poll() is None and (not out.exists() or out.stat().st_size < mark):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        print(f"  killed at {out.stat().st_size:,} bytes")
    process = started(rows, out)
    _, err = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"the last run failed: {err.decode()}")


def check_rows(out: Path, count: int) -> None:
    """Refuse an output that has not each row once, with its result."""
    seen = bytearray(count)
    with out.open() as file:
        for line in file:
            outcome = json.loads(line)
            number = outcome["row"]
            if seen[number] or outcome["result"] != {"sum": number + 1}:
                raise SystemExit(f"row {number}: twice, or wrong: {line}")
            seen[number] = 1
    if not all(seen):
        raise SystemExit(f"{count - sum(seen):,} rows are missing")
    print(f"  each of {count:,} rows is in the output once")


def memory_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line), 0)


def busy_seconds() -> float:
    """Return the CPU time of all processes that were waited for, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed_map(rows: Path, out: Path, *, is_cpu: bool) -> tuple[float, list[int]]:
    """Return the seconds of one map, from its first line on, and its memory meanwhile."""
    out.unlink(missing_ok=True)
    busy = busy_seconds()
    process = started(rows, out)
    while not out.exists() or not out.stat().st_size:
        time.sleep(0.001)
    begun, memory = time.perf_counter(), []
    while process.poll() is None:
        memory.append(memory_kib(process.pid))
        time.sleep(0.05)
    process.communicate()
    seconds = busy_seconds() - busy if is_cpu else time.perf_counter() - begun
    return seconds, [size for size in memory if size]


def timed_loop(count: int, *, is_cpu: bool) -> float:
    """Return the seconds of a plain loop of calls, in a process of its own."""
    busy = busy_seconds()
    command = [sys.executable, "-m", "tools.bulk", "--bare", str(count)]
    done = subprocess.run(command, capture_output=True, check=True)
    return busy_seconds() - busy if is_cpu else float(done.stdout)


async def bare_loop(count: int) -> float:
    """Make the calls in a plain loop; return its seconds."""
    numbers = iter(range(count))

    async def work(client: holdfast.Client) -> None:
        for number in numbers:
            await client.call_tool("add", {"a": number, "b": 1})

    async with holdfast.connect(SERVER) as client:
        await client.list_tools()
        begun = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(JOBS)))
        return time.perf_counter() - begun


def measure(rows: Path, out: Path, count: int, *, is_cpu: bool) -> None:
    bare, mapped = float("inf"), float("inf")
    memory: list[int] = []
    for _ in range(ROUNDS):
        bare = min(bare, timed_loop(count, is_cpu=is_cpu))
        seconds, memory = timed_map(rows, out, is_cpu=is_cpu)
        mapped = min(mapped, seconds)
    unit = "s of CPU time" if is_cpu else "s"
    print(f"  bare loop {count / bare:,.0f}/{unit}, map {count / mapped:,.0f}/{unit}", end="")
    print(f": {bare / mapped:.2f} ×")
    third = max(1, len(memory) // 3)
    early, late = max(memory[:third]), max(memory[-third:])
    print(f"  memory {early:,} KiB in the first third, {late:,} KiB in the last")
    if count >= 20_000 and (bare / mapped < LEAST_RATE or late > early * MOST_GROWTH):
        raise SystemExit("that is too slow, or memory grows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--cpu", action="store_true", help="count CPU time, not the clock's")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare is not None:
        print(asyncio.run(bare_loop(options.bare)))
        return
    print(f"{options.rows:,} rows, {options.kills} kills, --seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        rows, out = Path(folder, "rows.jsonl"), Path(folder, "out.jsonl")
        write_rows(rows, options.rows)
        kill_at_random(rows, out, options.rows, options.kills, options.seed)
        check_rows(out, options.rows)
        measure(rows, out, options.rows, is_cpu=options.cpu)


if __name__ == "__main__":
    main()
