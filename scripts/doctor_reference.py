"""The page of `holdfast doctor`: every check, with what it means, the fix and its evidence."""

import re

from holdfast.doctor import catalogue
from holdfast.doctor.findings import Check

HEAD = """\
# holdfast doctor

<!-- Written by `make docs` from src/holdfast/doctor/. Change it there. -->

`holdfast doctor --app module:app` examines a Celery application, the servers that it names and this machine
for settings that pay twice or lose work. It needs `pip install "holdfast[celery]"` and nothing else of
Holdfast (`holdfast[redis]` to ask a Redis). Without `--app` it examines an installation of Holdfast. It
reads, changes nothing, and prints no passwords or keys.

```bash
holdfast doctor --app myproject.celery:app                 # broker, results, tasks, clients of providers
holdfast doctor --app myproject.celery:app --offline       # settings only: no server is asked
holdfast doctor --app myproject.celery:app --grace-period 30 --longest-task 20m --longest-delay 2h
holdfast doctor --app myproject.celery:app --json --strict # for CI
holdfast doctor                                            # this installation
```

The application is imported as by `celery -A`, so its own code runs; what that prints goes to standard error.
Servers are asked by `INFO`, `CONFIG GET`, `TIME`, `CLIENT LIST` and a look at up to 500 keys (Redis), by a
connection and the management interface (RabbitMQ), and by `current_setting` (PostgreSQL). Clients of
providers are read from the source of the modules that the application has loaded from the current folder.

| exit code | means |
|---|---|
| 0 | no error; with `--strict`, no warning either |
| 1 | an error; with `--strict`, an error or a warning |
| 2 | the command line is wrong, or the application cannot be loaded |
| 4 | none of that, but a server did not answer, so that its checks were not made (`--offline` asks none) |

Each finding is *a problem*, *harmless here* (it would hurt elsewhere; the finding says why not here),
*passed*, or *not known* (a fact is missing; the finding says which option supplies it). `--all` shows
all of them. `--ignore ID` accepts a problem. ✖ error: will pay twice or lose work; ▲ warning: probably will;
● note.

What only you know is an option:

| option | supplies | for |
|---|---|---|
| `--longest-task TIME` | how long your longest task takes, without a time limit | C6, C8, R1, Q1, Q2, G3 |
| `--longest-delay TIME` | the longest eta, countdown or retry delay | C7 |
| `--grace-period TIME` | how long the orchestrator waits before it kills a worker | C10 |
| `--liveness COMMAND` | the liveness probe of workers | C14 |
| `--beats NUMBER` | how many `celery beat` run; those on this machine are counted | C18 |
| `--pool NAME` | the pool of workers; those on this machine are seen | C3, C17, Q8 |
| `--supervised` | something starts workers again when they end | C15 |
| `--consumer-timeout TIME` | `consumer_timeout` of RabbitMQ, which no interface tells; 0: off | C7, Q1, Q2 |
| `--apps-on-broker NUMBER` | how many applications use the same Redis database; or use `--app` twice | R3 |
| `--management URL` | RabbitMQ's management interface, if not on port 15672 | Q3, Q6, Q7, Q9, Q12 |
| `--may-repeat PATTERN` | names of tasks that may run twice | C1, C5 |
| `--may-be-lost PATTERN` | names of tasks whose loss does no harm | C2 |
"""
REPOSITORIES = {"celery": "celery/celery", "kombu": "celery/kombu", "airflow": "apache/airflow"}


def page() -> str:
    """The page as it should be."""
    parts = [HEAD]
    for area in catalogue.AREAS:
        parts.append(f"\n## {area.name}\n\n| id | | condition |\n|---|---|---|\n")
        parts += [
            f"| [{check.id}](#{_anchor(check)}) | {check.severity.sign} | {check.title} |\n"
            for check in area.checks
        ]
        parts += map(_section, area.checks)
    return "".join(parts)


def _anchor(check: Check) -> str:
    return re.sub(r"[^a-z0-9 -]", "", _heading(check).lower()).replace(" ", "-")


def _heading(check: Check) -> str:
    return f"{check.id} {check.title}"


def _section(check: Check) -> str:
    examined = (check.examine.__doc__ or "").strip()
    evidence = ", ".join(map(_link, check.evidence))
    return (
        f"\n### {_heading(check)}\n\n{check.severity.sign} {check.severity.value}. {examined}\n\n"
        f"{check.why}\n\n```text\n{check.fix}\n```\n\nEvidence: {evidence}\n"
    )


def _link(source: str) -> str:
    if source.startswith("https://"):
        return f"<{source}>"
    if source.startswith("docs/"):
        target = "../" + source.removeprefix("docs/")
        return f"[{source}]({target.removeprefix('../reference/')})"
    if match := re.fullmatch(r"([\w/-]+)#(\d+)", source):
        repository = REPOSITORIES.get(match[1], match[1])
        return f"[{source}](https://github.com/{repository}/issues/{match[2]})"
    return source
