"""What a relay costs: `make bench PART=relay`.

Orders of one text are paid with and without a relay, alternating, by one caller on SQLite; the provider is a
meter in a process of its own that answers at once. Then 200 callers wait for answers that take 5 s, all from
the relay, whose memory is read while they wait.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from holdfast import bootstrap, settings
from holdfast.core.errors import MustWaitError
from holdfast.engine.host import ThreadHost
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer

PROGRAM = Path(sys.executable).with_name("holdfast")
SLOW = 5.0
CALLERS = 200


def main() -> int:
    """Print both figures as a table and as JSON."""
    parser = argparse.ArgumentParser(prog="make bench PART=relay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer orders")
    orders = 100 if parser.parse_args().quick else 500
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        url = undo.enter_context(_meter())
        _configure(folder, url)
        bootstrap.migrated(settings.load())
        relay, _ = undo.enter_context(_process(str(PROGRAM), "relay"))
        figures = _latency(orders) | _memory(relay, url)
    figures["load"] = os.getloadavg()[0]
    for name, value in figures.items():
        print(f"{name:<28} {value:.2f}")
    print(json.dumps(figures))
    return 0


def _configure(folder: Path, url: str) -> None:
    named = {
        "DATA_DIR": folder,
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_BASE_URL": url,
        "EMBEDDING_API_KEY": "bench",
        "RELAY": "require",
        "LOG_LEVEL": "warning",
    }
    os.environ.update({f"HOLDFAST_{name}": str(value) for name, value in named.items()})


@contextlib.contextmanager
def _process(*words: str) -> Iterator[tuple[int, str]]:
    """The process id and the first line of a command, which is ended afterwards."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.pid, process.stdout.readline() if process.stdout is not None else ""
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextlib.contextmanager
def _meter() -> Iterator[str]:
    with _process(sys.executable, "-m", "holdfast.testing.meter", "--port", "0") as (_, line):
        yield str(json.loads(line)["url"])


def _latency(orders: int) -> dict[str, float]:
    """Milliseconds per order with and without the relay, and the median of the differences of neighbours."""
    loaded = settings.load()
    direct_settings = loaded.model_copy(update={"relay": "off"})
    times: dict[str, list[float]] = {"direct": [], "relay": []}
    with bootstrap.open_runtime(loaded) as relayed, bootstrap.open_runtime(direct_settings) as direct:
        both = {"direct": direct, "relay": relayed}
        for number in range(orders + 20):
            for name, runtime in both.items():
                began = time.perf_counter()
                _pay(runtime, f"{name} {number}")
                times[name].append(1000 * (time.perf_counter() - began))
    measured = {name: each[20:] for name, each in times.items()}
    pairs = [b - a for a, b in zip(measured["direct"], measured["relay"], strict=True)]
    return {
        "direct_p50_ms": statistics.median(measured["direct"]),
        "relay_p50_ms": statistics.median(measured["relay"]),
        "added_p50_ms": statistics.median(pairs),
    }


def _pay(runtime: bootstrap.Runtime, text: str) -> None:
    """The text is paid for, however often the relay is too busy to take its order in time."""
    call = Call(runtime.supplies.embedding or "", "embeddings", runtime.supplies.embedding_model or "", text)
    while True:
        payer = QueryPayer(ThreadHost(), "default", None, 60.0)
        try:
            runtime.engine.ledger.pay(payer, [call])
            break
        except MustWaitError:
            time.sleep(0.2)


def _memory(relay: int, url: str) -> dict[str, float]:
    """The relay's memory in MB while it waits for all callers' answers, and how long the last one waited."""
    meter = http.client.HTTPConnection(urlsplit(url).netloc)
    meter.request("POST", "/meter/plan", json.dumps({"latency": SLOW}))
    meter.getresponse().read()
    meter.close()
    most = 0.0
    with bootstrap.open_runtime(settings.load(), connections=16) as runtime:
        threads = [threading.Thread(target=_pay, args=(runtime, f"slow {n}")) for n in range(CALLERS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most = max(most, _resident(relay))
            time.sleep(0.1)
        seconds = time.monotonic() - began
    return {"callers": float(CALLERS), "relay_memory_mb": most, "seconds_for_all": seconds}


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    sys.exit(main())
