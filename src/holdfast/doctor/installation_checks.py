"""Checks of an installation: several hosts, files, languages, money, credentials and the machine."""

from collections.abc import Iterator

from holdfast.doctor import spans
from holdfast.doctor.facts import DoctorFacts, Endpoint
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, harmless, passed, problem, unknown

area = CheckArea("Installation")

# What a process of a worker takes beside the one that parses documents, measured at rest: 120 MiB.
PROCESS_MEMORY = 160 << 20
LEAST_FREE = 1 << 30
LEAST_FILES = 1024


@area.check(
    "H1",
    Severity.ERROR,
    title="Several machines on an embedded broker or database",
    why="The embedded broker is a folder and SQLite is a file: machines that do not share them share no "
    "work, and a network file system keeps neither safe.",
    fix="HOLDFAST_DATABASE_URL=postgresql://USER:PASSWORD@HOST/NAME\n"
    "HOLDFAST_BROKER_URL=amqp://USER:PASSWORD@HOST:5672//    # or redis://",
    evidence=("docs/decisions/0010-the-embedded-broker-is-a-folder.md", "docs/how-to/change-brokers.md"),
)
def several_hosts(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """More than one host, and a part that only one host can have."""
    own = facts.installation
    if own is None:
        return
    parts = [
        name for name, has in (("the embedded broker", own.embedded_broker), ("SQLite", own.sqlite)) if has
    ]
    if len(own.hosts) > 1 and parts:
        yield problem("Holdfast", f"workers on {spans.names(own.hosts)}, with {' and '.join(parts)}")
    else:
        yield passed("Holdfast", f"{max(1, len(own.hosts))} host, {' and '.join(parts) or 'with servers'}")


@area.check(
    "H2",
    Severity.ERROR,
    title="Documents are stored where other machines do not look",
    why="A worker can only index files that it can read. In a folder of one machine they are missing on all "
    "others.",
    fix="HOLDFAST_BLOBS_URL=s3://BUCKET/PREFIX?region=NAME",
    evidence=("docs/decisions/0062-the-blob-store-carries-an-id.md", "docs/reference/settings.md"),
)
def unshared_blobs(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """More than one host, and documents in a folder."""
    own = facts.installation
    if own is None:
        return
    if own.local_blobs and len(own.hosts) > 1:
        yield problem("Holdfast", f"documents in a folder, and workers on {spans.names(own.hosts)}")
    else:
        yield passed("Holdfast", "one host" if own.local_blobs else "documents are in a bucket")


@area.check(
    "H3",
    Severity.WARNING,
    title="Scanned pages cannot be read",
    why="Without the language files of text recognition, scanned pages are gaps: the document is searchable "
    "without them.",
    fix="apt-get install tesseract-ocr-eng tesseract-ocr-osd",
    evidence=("docs/reference/settings.md", "docs/decisions/0086-pages-are-recognised-once.md"),
)
def languages(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Text recognition is installed or required, and a language has no file."""
    own = facts.installation
    if own is None:
        return
    if own.ocr == "off":
        yield passed("Holdfast", "text recognition is off")
    elif not own.ocr_installed:
        if own.ocr == "on":
            yield problem(
                "Holdfast", "HOLDFAST_OCR is on and the extra is missing", 'pip install "holdfast[ocr]"'
            )
        else:
            yield passed("Holdfast", "text recognition is not installed")
    elif own.ocr_missing:
        packages = " ".join(f"tesseract-ocr-{name.replace('_', '-')}" for name in own.ocr_missing)
        yield problem(
            "Holdfast", f"no language file for {', '.join(own.ocr_missing)}", f"apt-get install {packages}"
        )
    else:
        yield passed("Holdfast", "every language has its file")


@area.check(
    "H4",
    Severity.WARNING,
    title="A model without a price",
    why="Its calls have no amount in bills and estimates, and under a hard budget its work is refused.",
    fix="# in the file of HOLDFAST_CONFIG\n[providers.NAME.prices]\n"
    '"MODEL" = { input = 0.15, output = 0.60 }',
    evidence=("docs/decisions/0056-no-price-is-not-a-high-price.md", "docs/how-to/control-spending.md"),
)
def prices(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Models that are configured and have no price."""
    own = facts.installation
    if own is None:
        return
    unpriced = [f"{each.model} of {each.provider}" for each in own.models if not each.priced]
    if unpriced:
        yield problem("Holdfast", f"no price for {spans.names(unpriced)}")
    else:
        yield passed("Holdfast", "every configured model has a price, or is free")


@area.check(
    "H5",
    Severity.WARNING,
    title="Nothing limits the spending",
    why="A loop in your own code, or one very large document, spends until somebody looks at the bill.",
    fix="holdfast budget set --hard 50 --period month      # US dollars\nHOLDFAST_MAX_RUN_COST=5",
    evidence=("docs/how-to/control-spending.md",),
)
def budgets(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Paid models without a budget or a limit per run."""
    own = facts.installation
    if own is None:
        return
    if not own.models:
        yield passed("Holdfast", "no paid model is configured")
    elif own.max_run_cost or own.budgets:
        limits = [f"{own.budgets} budgets"] if own.budgets else []
        limits += ["HOLDFAST_MAX_RUN_COST"] if own.max_run_cost else []
        yield passed("Holdfast", f"limited by {' and '.join(limits)}")
    elif own.budgets is None:
        yield unknown("Holdfast", "the budgets: the database was not read")
    else:
        yield problem("Holdfast", "paid models, no budget and no limit per run")


# H6 is kept for the relay: paid calls that die with their worker when none runs.


@area.check(
    "H7",
    Severity.WARNING,
    title="The disk is nearly full",
    why="A full disk stops the database, the embedded broker and every upload at the same time.",
    fix="df -h HOLDFAST_DATA_DIR               # make room, or move HOLDFAST_DATA_DIR",
    evidence=("https://www.sqlite.org/rescode.html#full",),
)
def disk(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Free space where data is stored."""
    free, total = facts.machine.disk_free, facts.machine.disk_total
    if free is None or not total:
        return
    said = f"{spans.size(free)} of {spans.size(total)} are free in {facts.machine.disk_folder}"
    if free < LEAST_FREE or free < 0.05 * total:
        yield problem("this machine", said)
    else:
        yield passed("this machine", said)


@area.check(
    "H8",
    Severity.WARNING,
    title="The limits of the container are too low",
    why="A worker that needs more memory than its container may use is killed in mid-work, again and again.",
    fix="# give the container more memory, or:\nHOLDFAST_WORKER_CONCURRENCY=1\nHOLDFAST_PARSE_MEMORY=256",
    evidence=("https://kubernetes.io/docs/concepts/configuration/manage-resources-containers",),
)
def limits(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Memory and open files that workers may use, against what they may need."""
    own, machine = facts.installation, facts.machine
    if machine.file_limit is not None and machine.file_limit < LEAST_FILES:
        seen = f"{machine.file_limit} open files are allowed"
        yield problem("this machine", seen, "ulimit -n 65536                       # LimitNOFILE= in systemd")
    if own is None or machine.memory_limit is None:
        yield passed("this machine", "no memory limit of a container")
        return
    needed = (own.concurrency + 1) * PROCESS_MEMORY + own.concurrency * (own.parse_memory << 20)
    said = (
        f"{spans.size(machine.memory_limit)} are allowed; a worker with {own.concurrency} processes may need "
        f"{spans.size(needed)}"
    )
    yield problem("this machine", said) if machine.memory_limit < needed else passed("this machine", said)


@area.check(
    "S1",
    Severity.ERROR,
    title="Default credentials",
    why="Who can reach a broker with the password that it was shipped with can read every task, and run any: "
    "a message is a call with arguments.",
    fix="rabbitmqctl add_user NAME PASSWORD && rabbitmqctl delete_user guest\n"
    "redis-cli CONFIG SET requirepass PASSWORD && redis-cli CONFIG REWRITE",
    evidence=(
        "https://www.rabbitmq.com/docs/production-checklist#users-and-permissions",
        "https://redis.io/docs/latest/operate/oss_and_stack/management/security",
    ),
)
def credentials(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Users and passwords that everybody knows, and servers elsewhere that need none."""
    for endpoint in _endpoints(facts):
        if endpoint.kind not in {"redis", "rabbitmq", "postgresql"}:
            continue
        open_redis = endpoint.kind == "redis" and endpoint.no_password
        seen = "default user and password" if endpoint.default_credentials else "no password"
        if not endpoint.default_credentials and not open_redis:
            yield passed(endpoint.shown, "credentials of its own")
        elif endpoint.local:
            yield harmless(
                endpoint.shown, seen, "it is on this machine; change it before others can reach it"
            )
        else:
            yield problem(endpoint.shown, seen)


def _endpoints(facts: DoctorFacts) -> list[Endpoint]:
    listed = [database.endpoint for database in facts.databases]
    for app in facts.apps:
        listed += [app.broker] if app.result_backend is None else [app.broker, app.result_backend]
    return list(dict.fromkeys(listed))
