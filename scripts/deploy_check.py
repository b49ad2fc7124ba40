"""`make deploy-check`: everything below deploy/ is examined by the tool that will read it.

promtool comes from Debian's package `prometheus`: the one on the PATH, or else unpacked below the folder of
the environment, without installing or starting a server.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
TOOLS = ROOT / ".venv/deploy"
SECONDS = 300


def promtool() -> str:
    """Where promtool is; it is unpacked first if this machine has none."""
    if installed := shutil.which("promtool"):
        return installed
    unpacked = TOOLS / "debian/usr/bin/promtool"
    if not unpacked.is_file():
        with tempfile.TemporaryDirectory() as folder:
            call(["apt-get", "update", "-qq"])
            # apt drops its rights for downloads, and would complain about a folder of root's.
            call(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "prometheus"], cwd=folder)
            package = next(Path(folder).glob("prometheus_*.deb"))
            call(["dpkg-deb", "-x", str(package), str(TOOLS / "debian")])
    return str(unpacked)


def call(command: list[str], cwd: str | Path = ROOT) -> None:
    """The command ended with 0; otherwise CalledProcessError, with what it printed."""
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=SECONDS)


def prometheus() -> Iterator[str]:
    """Rules are valid, fire when they must and only then; the settings are valid."""
    tool = promtool()
    call([tool, "check", "rules", "deploy/prometheus/rules.yml"])
    call([tool, "test", "rules", "deploy/prometheus/rules_test.yml"])
    call([tool, "check", "config", "--syntax-only", "deploy/prometheus/prometheus.yml"])
    yield "alert rules: checked and tested by promtool"


def grafana() -> Iterator[str]:
    """Every expression of the dashboard is one that Prometheus accepts."""
    panels = json.loads((DEPLOY / "grafana/holdfast.json").read_text())["panels"]
    targets = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(targets)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panels.yml"
        path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
        call([promtool(), "check", "rules", str(path)])
    yield f"dashboard: {len(targets)} expressions accepted by promtool"


def systemd() -> Iterator[str]:
    """Systemd accepts the units; the program that they start is the one of this environment."""
    if not shutil.which("systemd-analyze"):
        yield "systemd units: not checked, there is no systemd-analyze here"
        return
    with tempfile.TemporaryDirectory() as folder:
        units = []
        for unit in sorted((DEPLOY / "systemd").glob("*.service")):
            copy = Path(folder) / unit.name.replace("@.", "@bulk.")
            copy.write_text(unit.read_text().replace("/opt/holdfast/bin", str(ROOT / ".venv/bin")))
            units.append(str(copy))
        call(["systemd-analyze", "verify", "--man=no", *units])
    yield f"systemd: {len(units)} units accepted by systemd-analyze"


def docker() -> Iterator[str]:
    """Hadolint has no complaint about the Dockerfile, and the compose files fit the specification."""
    call([str(TOOLS / "bin/hadolint"), "deploy/docker/Dockerfile"])
    yield "Dockerfile: hadolint has no complaint"
    files = [str(path) for path in sorted((DEPLOY / "compose").glob("*.yml"))]
    call([str(TOOLS / "bin/check-jsonschema"), "--builtin-schema", "vendor.compose-spec", *files])
    yield f"compose: {len(files)} files fit the specification"


CHECKS = (prometheus, grafana, systemd, docker)


def main() -> int:
    """The exit code: 1 if a check failed, after all of them were made."""
    failed = 0
    for check in CHECKS:
        try:
            for line in check():
                print(f"ok      {line}", flush=True)
        except subprocess.CalledProcessError as error:
            failed += 1
            print(
                f"FAILED  {check.__name__}: {' '.join(error.cmd)}\n{error.stdout}{error.stderr}", flush=True
            )
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
