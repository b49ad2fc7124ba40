"""An installation of real processes to look at: API, worker, and a provider that charges."""

from pathlib import Path

from holdfast.testing.meter import Meter
from tests.worker.install import WorkerInstall
from tests.worker.programs import Program

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
LEASE = {"lease_ttl": "3", "lease_renew_every": "0.7", "sweep_interval": "0.3"}


class LiveService:
    """An installation on the embedded default, as `holdfast api` and `holdfast worker` make it."""

    def __init__(self, folder: Path, *, meter: Meter | None = None, model: bool = False) -> None:
        self.meter = (meter or Meter(honour_keys=True)).start()
        self.install = WorkerInstall(folder, f"sqlite:///{folder}/data/holdfast.db")
        provider = self.meter.base_url
        self.changes = {
            **LEASE,
            "kinds": "",
            "webhook_private": "true",
            "embedding_provider": "openai",
            "embedding_base_url": provider,
            "embedding_api_key": "test",
            "embedding_key_retention": "3600",
        }
        if model:
            self.changes |= {"llm_provider": "openai", "llm_base_url": provider, "llm_api_key": "test"}
        if not self.meter.honour_keys:
            self.changes["embedding_key_retention"] = "0"
        done = self.install.command("migrate", **self.changes)
        assert done.returncode == 0, done.stderr
        self.port = 0
        self.api: Program | None = None
        self.worker: Program | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        """The API answers; a second time, under the same address."""
        self.api = self.install.start("api", **self.changes | {"port": str(self.port)})
        said = self.api.says(r"holdfast api: http://127\.0\.0\.1:(\d+)", 60)
        self.port = int(said[1])

    def work(self) -> None:
        """A worker is ready."""
        self.worker = self.install.worker("--concurrency", "1", **self.changes)

    def close(self) -> None:
        self.meter.release()
        for program in self.install.programs:
            program.clear()
        self.meter.close()
