"""`setscore serve` under load: many clients at once beside the same documents in one batch.

    python benchmarks/speed/serve.py [--clients 64] [--seconds 10] [--rounds 3] [--json FILE]
    python benchmarks/speed/serve.py --smoke                # a second with four clients: does it run?

Every client sends one document after the other, each with its labels, and waits for the answer. Measured in turns, so
that a noisy neighbour hits both: the clients, and one call of `SetScoreClassifier.classify` with documents of the same
kind. Clients run on the same cores as the server. Then what must hold under stress, each of which fails the run:

    overload     more than may wait: every answer is 200 or 429, and 429 says when to come again
    memory       the server's resident memory does not grow from the first round to the last
    leaving      clients that disconnect free their place: nothing of theirs is waiting soon after
    SIGTERM      every request that was accepted is answered before the server ends
"""

import asyncio
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import header, options, row, tell, timed, write_json
from benchmarks.speed.cpu import WORDS
from setscore import SetScoreClassifier

LABELS = {f"{word} news": f"news about the {word}" for word in WORDS[:12]}
TOKENS = (40, 240)  # words of a document, at least and at most
EACH = 16  # documents of a request that is under way while the server is told to end
GROWTH = 1.1  # of resident memory that counts as flat


@dataclass
class Seen:
    """What the clients saw: seconds of each answer, and how many answers had each status."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    promised: int = 0  # answers 429 with Retry-After

    def quantile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Client:
    """A connection that is kept, with as little around it as can be: it shares its cores with the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, documents: list[str]) -> None:
        body = json.dumps({"documents": documents, "labels": LABELS}).encode()
        head = "POST /classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(head.split()[1]), headers, json.loads(body)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


@contextmanager
def server(*extra: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of its own, ready, and its port."""
    command = [Path(sys.executable).parent / "setscore", "serve", "--port", "0", "--no-page", *extra]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        if found is None:
            raise RuntimeError(f"the server did not start: {process.stderr.read()}")
        port = int(found[1])
        asyncio.run(_until(port, lambda text: 'status":"ready' in text.replace(" ", ""), "/ready"))
        yield process, port
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


async def _get(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text


async def _until(port: int, reached: Any, path: str = "/metrics", most: float = 60.0) -> float:
    """Seconds until what is at `path` is as wished."""
    begun = time.perf_counter()
    while not reached(await _get(port, path)):
        if time.perf_counter() - begun > most:
            raise RuntimeError(f"{path} did not become as it should within {most:g} seconds")
        await asyncio.sleep(0.02)
    return time.perf_counter() - begun


def documents(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(*TOKENS))) for _ in range(count)]


def waiting(text: str) -> float:
    return float(re.search(r"^setscore_waiting_documents (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]


def memory(process: subprocess.Popen[str]) -> int:
    """Resident bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]


async def load(port: int, clients: int, seconds: float, *, each: int = 1, seed: int = 0) -> tuple[Seen, float]:
    """What so many clients see in so many seconds, and the seconds until the last of them had its answer."""
    seen, begun = Seen(), time.perf_counter()

    async def client(number: int) -> None:
        pool = documents(64, seed * 1000 + number)
        async with connected(port) as one:
            place = 0
            while time.perf_counter() - begun < seconds:
                sent = time.perf_counter()
                await one.send([pool[(place + i) % len(pool)] for i in range(each)])
                status, headers, _ = await one.answer()
                seen.statuses[status] += 1
                place += each
                if status == 200:
                    seen.seconds.append(time.perf_counter() - sent)
                elif status == 429:
                    seen.promised += "retry-after" in headers
                    await asyncio.sleep(0.05)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return seen, time.perf_counter() - begun


def compare(clients: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Documents a second, of the clients and of one batch, in turns."""
    classifier = SetScoreClassifier(LABELS)
    classifier.classify(documents(4, 1))
    served, batched, together, resident = [], [], Seen(), []
    with server() as (process, port):
        asyncio.run(load(port, clients, min(2.0, seconds)))  # warm
        for number in range(rounds):
            count = max(8, int(seconds * (statistics.mean(batched) if batched else 30)))
            texts = documents(count, 10_000 + number)
            _, took = timed(lambda texts=texts: classifier.classify(texts))  # type: ignore[misc]
            batched.append(len(texts) / took)
            seen, took = asyncio.run(load(port, clients, seconds, seed=number + 1))
            served.append(len(seen.seconds) / took)
            resident.append(memory(process))
            together.seconds += seen.seconds
            together.statuses += seen.statuses
            size = f"{resident[-1] / 1e6:.0f} MB"
            tell(f"round {number + 1}: {served[-1]:.1f} served, {batched[-1]:.1f} in one batch, {size}")
    return {
        "clients": clients,
        "served": statistics.median(served),
        "batched": statistics.median(batched),
        "ratio": statistics.median(served) / statistics.median(batched),
        "p50": together.quantile(0.5),
        "p99": together.quantile(0.99),
        "requests": len(together.seconds),
        "statuses": dict(together.statuses),
        "memory": resident,
    }


def overload(clients: int, seconds: float) -> dict[str, Any]:
    """Clients that ask more than may wait: what they are told."""
    with server("--max-waiting", str(clients)) as (_, port):
        seen, _ = asyncio.run(load(port, clients, seconds, each=4))
    return {"statuses": dict(seen.statuses), "with_retry_after": seen.promised}


async def _leave(port: int, clients: int) -> dict[str, float]:
    async with connected(port) as busy:
        await busy.send(documents(64, 7))
        leaving = [await asyncio.open_connection("127.0.0.1", port) for _ in range(clients)]
        for number, (reader, writer) in enumerate(leaving):
            await Client(reader, writer).send(documents(EACH, 100 + number))
        most = 0.0
        for _ in range(100):
            most = max(most, waiting(await _get(port, "/metrics")))
            if most >= EACH * clients:
                break
            await asyncio.sleep(0.01)
        for _, writer in leaving:
            writer.transport.abort()
        freed = await _until(port, lambda text: waiting(text) <= 64)
        await busy.answer()
    abandoned = re.search(r"^setscore_abandoned_total (\S+)$", await _get(port, "/metrics"), re.MULTILINE)
    return {"waiting": most, "freed_seconds": freed, "abandoned": float(abandoned[1]) if abandoned else 0.0}


async def _terminate(process: subprocess.Popen[str], port: int, clients: int) -> dict[str, int]:
    connections = [await asyncio.open_connection("127.0.0.1", port, limit=2**24) for _ in range(clients)]
    ones = [Client(reader, writer) for reader, writer in connections]
    for number, one in enumerate(ones):
        await one.send(documents(EACH, 500 + number))
    await _until(port, lambda text: waiting(text) > 0)
    await asyncio.sleep(0.3)  # until every request has been read
    process.send_signal(signal.SIGTERM)
    answers = await asyncio.gather(*(one.answer() for one in ones), return_exceptions=True)
    whole = sum(not isinstance(a, BaseException) and a[0] == 200 and len(a[2]["predictions"]) == EACH for a in answers)
    await asyncio.to_thread(process.wait, 60)
    return {"sent": clients, "answered": whole}


def stress(clients: int) -> dict[str, Any]:
    """Clients that leave, and the end."""
    with server("--timeout", "600") as (process, port):  # on a slow machine the last of them wait for long
        left = asyncio.run(_leave(port, clients))
        ended = asyncio.run(_terminate(process, port, clients))
    return {"leaving": left, "sigterm": ended}


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    clients, seconds, rounds = (4, 0.5, 1) if asked.smoke else (asked.clients, asked.seconds, asked.rounds)
    found = compare(clients, seconds, rounds) | {"overload": overload(clients, seconds)} | stress(min(clients, 32))
    print(header(["clients", "documents/s", "in one batch", "ratio", "p50", "p99"]))
    numbers = [f"{found['served']:.1f}", f"{found['batched']:.1f}", f"{found['ratio']:.2f}"]
    print(row([found["clients"], *numbers, f"{1000 * found['p50']:.0f} ms", f"{1000 * found['p99']:.0f} ms"]))
    told = found["overload"]["statuses"]
    print(f"\noverload: {', '.join(f'{count} times {status}' for status, count in sorted(told.items()))}")
    print(f"memory: {', '.join(f'{size / 1e6:.0f} MB' for size in found['memory'])}")
    print(f"leaving: {found['leaving']['waiting']:.0f} waited, freed after {found['leaving']['freed_seconds']:.2f} s")
    print(f"SIGTERM: {found['sigterm']['answered']} of {found['sigterm']['sent']} accepted requests answered")
    write_json(asked.json, found)
    mistakes = [
        "a request failed without overload" if set(found["statuses"]) - {200} else "",
        "overload gave something but 200 and 429" if set(told) - {200, 429} else "",
        "a 429 had no Retry-After" if told.get(429, 0) != found["overload"]["with_retry_after"] else "",
        "memory grew" if found["memory"][-1] > GROWTH * found["memory"][0] else "",
        "an accepted request was lost" if found["sigterm"]["answered"] < found["sigterm"]["sent"] else "",
    ]
    if told := [mistake for mistake in mistakes if mistake]:
        sys.exit("; ".join(told))


if __name__ == "__main__":
    main()
