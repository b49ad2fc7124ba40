"""every screen of the web UI as a picture: wide and on a phone, light and dark, empty, busy and broken.

    python -m tests.page.gallery FOLDER [WORD …]

takes them all, or those whose names hold one of the words. They are for looking at: nothing is asserted.
With `--docs` the pictures of the documentation are taken again as well.
"""

import contextlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from holdfast.chaos.waiting import until
from holdfast.store.features import open_database
from holdfast.testing.meter import Meter
from scripts.services import packages
from tests.page.browser_user import Api
from tests.page.live_service import FLAGS, LiveService
from tests.page.sample_data import World, answers, prose
from tests.webhooks.receiver import Receiver
from tests.worker.programs import NURSERY

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
LOOKS = {
    "wide-light": (WIDE, "light"),
    "wide-dark": (WIDE, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}
Prepared = Callable[[Page], object]


class Gallery:
    """Four windows on one installation, and a folder for what they show."""

    def __init__(self, browser: Browser, address: str, folder: Path, words: list[str]) -> None:
        self.address, self.folder, self.words = address, folder, words
        self.windows = {
            name: browser.new_context(viewport=size, color_scheme=scheme).new_page()
            for name, (size, scheme) in LOOKS.items()
        }

    def hang(self, name: str, path: str, prepare: Prepared = lambda page: None, *, live: bool = True) -> None:
        """The four pictures of a screen, after what `prepare` has done to it."""
        if self.words and not any(word in name for word in self.words):
            return
        for look, page in self.windows.items():
            page.goto(self.address + path)
            if live:
                page.wait_for_selector("#live[data-state=live]")
            prepare(page)
            page.wait_for_timeout(250)
            page.screenshot(path=self.folder / f"{name}-{look}.png", full_page=True)
        print(name, flush=True)


def opened(dialog: str) -> Prepared:
    """A dialog is open."""

    def prepare(page: Page) -> None:
        page.click(f"[data-open={dialog}] >> nth=0")
        page.wait_for_selector(f"#{dialog}[open]")

    return prepare


def empty(hall: Gallery, world: World) -> None:
    """Nothing is there yet."""
    for name, path in (("home", "/"), ("search", "/search"), ("jobs", "/jobs"), ("bill", "/bill")):
        hall.hang(f"empty-{name}", path)
    hall.hang("empty-operations", "/operations")
    hall.hang("home-dialog", "/", opened("new-collection"))
    world.api.call("POST", "collections", {"id": "blank", "title": "New papers"})
    hall.hang("empty-collection", "/collections/blank")
    world.api.call("DELETE", "collections/blank")


def resting(hall: Gallery, world: World) -> None:
    """All is done, or failed."""
    names = world.names
    hall.hang("document-done", f"/documents/{names['log']}", lambda page: page.click("summary >> nth=0"))
    hall.hang("document-pdf", f"/documents/{names['rules']}")
    hall.hang("document-failed", f"/documents/{names['scan']}")
    hall.hang("search", "/search?collection=harbour&q=who+may+move+the+crane+at+night")
    hall.hang("search-nothing", "/search?collection=tickets&q=zzzzzz")
    hall.hang("collection-filter-nothing", "/collections/tickets?status=failed")
    hall.hang("actions", "/collections/contracts/actions")
    hall.hang("actions-empty", "/collections/tickets/actions")
    hall.hang("actions-dialog", "/collections/contracts/actions", opened("new-action"))
    hall.hang(
        "document-followed",
        f"/documents/{world.api.get('collections/contracts/documents')['documents'][0]['id']}",
    )
    hall.hang("jobs", "/jobs")
    hall.hang("job-dialog", "/jobs", opened("new-job"))
    hall.hang("job-qa", f"/jobs/{names['qa']}")
    hall.hang("job-extract", f"/jobs/{names['extract']}")
    hall.hang("not-found", "/collections/nowhere", live=False)

    def estimate(page: Page) -> None:
        opened("options")(page)
        page.fill("#o-chunk_size", "128")
        page.click("#options >> text=Estimate")
        page.wait_for_selector("[data-estimated]:not([hidden])")

    hall.hang("collection-options", "/collections/harbour", estimate)
    hall.hang("collection-add-text", "/collections/harbour", opened("add-text"))
    hall.hang(
        "collection-chosen", "/collections/harbour", lambda page: page.check("input[name=pick] >> nth=1")
    )


def busy(hall: Gallery, world: World, stand: LiveService) -> None:
    """Two are worked on, others wait; somebody clicks twice."""
    stand.meter.plan(latency=0.4)
    running = world.api.text("harbour", "Logbook of the Albatross, volume 4", prose("volume 4", 1500))
    until(lambda: world.api.document(running)["progress"]["share"] > 0.1, 60, "it does not begin", every=0.1)
    stand.meter.hold()
    for number in (5, 6):
        text = prose(f"volume {number}", 80)
        world.api.text("harbour", f"Logbook of the Albatross, volume {number}", text)
    world.refused("POST", f"documents/{running}/index", {"mode": "retry"})
    job = {"kind": "qa", "params": {"limit": 40}}
    busy_job = world.api.call("POST", "collections/contracts/jobs", job)["job_id"]

    def twice(page: Page) -> None:
        page.click(f"#d-{running} button:has-text('Index')")
        page.wait_for_selector(f"#d-{running} .answer")

    hall.hang("home-busy", "/")
    hall.hang("collection-busy", "/collections/harbour", twice)
    hall.hang("document-busy", f"/documents/{running}")
    hall.hang("jobs-busy", "/jobs")
    hall.hang("job-busy", f"/jobs/{busy_job}")
    hall.hang("operations-busy", "/operations")
    world.names["running"] = running


def broken(hall: Gallery, world: World, stand: LiveService) -> None:
    """A worker is killed with an order open; nobody is there to go on; then the API goes away."""
    assert stand.worker is not None
    stand.worker.tell(signal.SIGKILL, group=True)
    stand.worker.clear()
    stand.meter.release()
    stand.meter.plan(latency=0.0)
    name = world.names["running"]
    world.api.call("PUT", "budgets", {"scope": "collection:contracts", "hard": 0.000001})
    world.api.call("PUT", "budgets", {"scope": "tenant", "hard": 0.05, "soft": 0.001})
    hall.hang("document-waiting", f"/documents/{name}")
    until(lambda: "working" not in crew(world.api), 60, "the worker is not lost", every=0.5)
    hall.hang("home-broken", "/")
    hall.hang("document-alone", f"/documents/{name}")
    hall.hang("operations-broken", "/operations")
    stand.work()
    until(lambda: world.api.get("orders?state=parked")["orders"], 60, "nothing is parked", every=0.2)
    hall.hang("bill-parked", "/bill")
    hall.hang("document-parked", f"/documents/{name}")
    hall.hang("operations-parked", "/operations")
    for order in world.api.get("orders?state=parked")["orders"]:
        world.api.call("POST", f"orders/{order['id']}/resolve", {"charged": True})
    until(lambda: world.api.document(name)["ready"], 90, "it does not heal")
    hall.hang("document-healed", f"/documents/{name}", lambda page: page.click("summary >> nth=0"))
    hall.hang("bill", "/bill")
    hall.hang("home", "/")
    hall.hang("collection", "/collections/harbour")
    hall.hang("operations", "/operations")


def crew(api: Api) -> set[str]:
    """The states of all workers."""
    return {one["state"] for one in api.get("status")["installation"]["workers"]}


def last(hall: Gallery, stand: LiveService) -> None:
    """The stream drops; then keys are on."""
    assert stand.api is not None
    if not hall.words or any(word in "stream-dropped" for word in hall.words):
        for page in hall.windows.values():
            page.goto(hall.address + "/collections/contracts")
            page.wait_for_selector("#live[data-state=live]")
        stand.api.tell()
        for look, page in hall.windows.items():
            page.wait_for_selector("#live[data-state=lost]")
            page.wait_for_timeout(1500)
            page.screenshot(path=hall.folder / f"stream-dropped-{look}.png")
        stand.api.ended(30)
        stand.serve()
    done = stand.install.command("keys", "create", "--scope", "read", **stand.changes)
    assert done.returncode == 0, done.stderr
    hall.hang("sign-in", "/sign-in", live=False)

    def wrong(page: Page) -> None:
        page.fill("#key", "hf_wrong")
        page.click("text=Sign in >> nth=-1")
        page.wait_for_selector("#problem")

    hall.hang("sign-in-wrong", "/sign-in", wrong, live=False)


@contextlib.contextmanager
def installation() -> Iterator[LiveService]:
    """A stand whose language model is metered as well."""
    with tempfile.TemporaryDirectory() as folder:
        install = LiveService(Path(folder), meter=Meter(chat=answers), model=True)
        install.changes |= {"order_deadline": "20", "in_doubt": "park"}
        try:
            install.serve()
            install.work()
            yield install
        finally:
            install.close()
            NURSERY.close()


PICTURES = {
    "collection": "collection-busy-wide-light",
    "home": "home-busy-wide-light",
    "document": "document-parked-wide-dark",
    "actions": "actions-wide-light",
    "search": "search-wide-light",
    "bill": "bill-parked-wide-dark",
    "operations": "operations-broken-wide-light",
    "phone": "phone",
}
DOCS = Path(__file__).parents[2] / "docs/pictures"


def publish(folder: Path) -> None:
    """The pictures of the documentation are these, cut to a screen and made small."""
    phones = [
        Image.open(folder / f"{name}.png").crop((0, 0, PHONE["width"], PHONE["height"]))
        for name in ("home-busy-phone-light", "collection-busy-phone-dark", "document-busy-phone-light")
    ]
    side = Image.new("RGB", (3 * PHONE["width"] + 48, PHONE["height"]), "white")
    for column, phone in enumerate(phones):
        side.paste(phone, (column * (PHONE["width"] + 24), 0))
    side.save(folder / "phone.png")
    for name, source in PICTURES.items():
        screen = Image.open(folder / f"{source}.png").convert("RGB")
        height = PHONE["height"] if name == "phone" else WIDE["height"]
        visible = screen.crop((0, 0, screen.width, min(screen.height, height)))
        visible.quantize(64, dither=Image.Dither.NONE).save(DOCS / f"{name}.png", optimize=True)


def main(folder: Path, words: list[str]) -> None:
    """All pictures are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    where = packages.found("chromium")
    if where is None:
        raise SystemExit("there is no Chromium: apt-get install chromium")
    with installation() as stand, Receiver() as receiver, sync_playwright() as player:
        hall = Gallery(
            player.chromium.launch(executable_path=where, args=list(FLAGS)), stand.address, folder, words
        )
        world = World(Api(stand.address))
        empty(hall, world)
        world.library()
        world.changed()
        world.jobs()
        world.hooks(receiver.url)
        with contextlib.closing(open_database(stand.install.database_url)) as db:
            world.spread(db)
        resting(hall, world)
        busy(hall, world, stand)
        broken(hall, world, stand)
        last(hall, stand)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [word for word in sys.argv[2:] if word != "--docs"])
    if "--docs" in sys.argv:
        publish(Path(sys.argv[1]))
