"""Measures the gateway: what a hit and a miss cost, beside LiteLLM's proxy where it is installed.

    python -m bench.gateway [--requests N] [--litellm PATH] [--json FILE]

One client after the other, on this machine, against a meter that answers at once. *Hit*: a chat completion in
a scope that was paid before; processor time of the gateway, from `/proc`. *Miss*: a new prompt through
the gateway, less the same straight to the meter. `--litellm` is its command; its cache is in memory.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path

from holdfast.testing.meter import Meter

TICKS = os.sysconf("SC_CLK_TCK")
CONFIG = """
model_list:
  - model_name: gpt-4o-mini
    litellm_params: {{model: openai/gpt-4o-mini, api_base: "{url}", api_key: x}}
litellm_settings: {{cache: true, cache_params: {{type: local}}}}
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of one kind of request: in the middle, and of the server's processor on average."""

    name: str
    median: float
    processor: float
    per_second: float
    memory: float


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--litellm", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: list[Measured] = []
    with Meter() as meter, tempfile.TemporaryDirectory() as folder:
        straight = timed(
            "straight to the meter",
            meter.base_url,
            "/v1/chat/completions",
            0,
            options.requests,
            distinct=True,
        )
        results.append(straight)
        with holdfast(meter, Path(folder)) as (url, pid):
            path = "/gateway/scope/bench/v1/chat/completions"
            results.append(timed("gateway, miss", url, path, pid, options.requests, distinct=True))
            results.append(timed("gateway, hit", url, path, pid, options.requests, distinct=False))
        if options.litellm:
            with litellm(options.litellm, meter, Path(folder)) as (url, pid):
                path = "/v1/chat/completions"
                results.append(timed("litellm, miss", url, path, pid, options.requests, distinct=True))
                results.append(timed("litellm, hit", url, path, pid, options.requests, distinct=False))
    for each in results:
        added = each.median - straight.median
        print(
            f"{each.name:24} {each.median:7.2f} ms (+{added:.2f}), processor {each.processor:6.2f} ms, "
            f"{each.per_second:7.0f} a second, {each.memory:5.0f} MB"
        )
    print(f"load {os.getloadavg()[0]:.1f}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in results], indent=1))


def timed(name: str, url: str, path: str, pid: int, count: int, *, distinct: bool) -> Measured:
    """So many requests, one after the other over one connection, after a few that do not count."""
    host = url.removeprefix("http://").partition("/")[0]
    connection = HTTPConnection(host, timeout=60)
    seconds: list[float] = []

    def ask(number: int) -> None:
        prompt = f"{name} {number if distinct else 0}"
        body = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]})
        headers = {"Content-Type": "application/json", "Authorization": "Bearer unused"}
        began = time.perf_counter()
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - began)
        if answer.status != 200:
            raise SystemExit(f"{name}: status {answer.status}")

    for number in range(-20, 0):
        ask(number)
    seconds.clear()
    before, began = processor(pid), time.perf_counter()
    for number in range(count):
        ask(number)
    whole = time.perf_counter() - began
    used = 1000 * (processor(pid) - before) / count
    connection.close()
    return Measured(name, 1000 * sorted(seconds)[count // 2], used, count / whole, memory(pid))


def processor(pid: int) -> float:
    """The processor time of a process so far, in seconds; 0 for none."""
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> float:
    """The memory that a process has in use, in megabytes; 0 for none."""
    if not pid:
        return 0.0
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextlib.contextmanager
def holdfast(meter: Meter, folder: Path) -> Iterator[tuple[str, int]]:
    """`holdfast gateway` on a new SQLite database, in front of the meter."""
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": str(folder),
        "HOLDFAST_LLM_PROVIDER": "openai",
        "HOLDFAST_LLM_BASE_URL": meter.base_url,
        "HOLDFAST_API_RATE": "100000",
    }
    command = [sys.executable, "-m", "holdfast.cli"]
    subprocess.run([*command, "migrate"], env=environment, check=True, capture_output=True)
    server = subprocess.Popen(
        [*command, "gateway", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip().rpartition(" ")[2]
    with ended(server):
        yield url, server.pid


@contextlib.contextmanager
def litellm(command: str, meter: Meter, folder: Path) -> Iterator[tuple[str, int]]:
    """LiteLLM's proxy with its cache in memory, in front of the same meter."""
    config = folder / "litellm.yaml"
    config.write_text(CONFIG.format(url=meter.base_url))
    port = 18_643
    line = [
        command,
        "--config",
        str(config),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--num_workers",
        "1",
    ]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True"}
    server = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with ended(server):
        wait(lambda: _answers(port), 120)
        yield f"http://127.0.0.1:{port}", server.pid


def _answers(port: int) -> bool:
    try:
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/health/liveliness")
            return connection.getresponse().status == 200
    except OSError:
        return False


def wait(ready: Callable[[], bool], seconds: float) -> None:
    """Return once it is ready."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise SystemExit("the server did not start")
        time.sleep(0.5)


@contextlib.contextmanager
def ended(server: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> Iterator[None]:
    """The server has ended after the block."""
    try:
        yield
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
