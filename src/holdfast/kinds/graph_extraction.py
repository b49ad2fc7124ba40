"""Windows of documents, read for entities and relations: a call for each, and one more to repair it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.core.errors import WorkError
from holdfast.engine.models import Model
from holdfast.engine.work import Work
from holdfast.kinds import graph_answers, graph_assembly, graph_windows, model_calls
from holdfast.kinds.graph_answers import Extraction, ExtractionRules
from holdfast.kinds.graph_assembly import Embedder, WindowMentions
from holdfast.ledger.pay import Call
from holdfast.store.derived.inputs import EmbeddedText

# Windows that are paid for together; between two batches a cancelled job stops.
BATCH = 16


@dataclass(frozen=True, slots=True)
class DocumentWindow:
    """A window of a version of a document, with its chunks by number."""

    document: str
    version: int
    text: str
    chunks: dict[int, str]
    embedder: Embedder | None


def windows_of(chunks: Sequence[EmbeddedText], document: str, version: int) -> list[DocumentWindow]:
    """The windows of a document's chunks, in order."""
    listed = []
    for window in graph_windows.windows([chunk.text for chunk in chunks]):
        own = chunks[window.first : window.last + 1]
        by = next(((each.provider, each.model) for each in own if each.provider and each.model), None)
        embedder = None if by is None else (str(by[0]), str(by[1]))
        texts = {chunk.number: chunk.text for chunk in own}
        listed.append(DocumentWindow(document, version, window.text, texts, embedder))
    return listed


@dataclass(slots=True)
class ExtractionWork:
    """The windows of one slice, as they are read."""

    work: Work
    model: Model
    rules: ExtractionRules
    gleanings: int
    errors: list[tuple[DocumentWindow, WorkError]] = field(default_factory=list)

    def run(self, windows: Sequence[DocumentWindow]) -> list[WindowMentions]:
        """What each window says; one whose answers could not be read is left out and among the errors."""
        listed: list[WindowMentions] = []
        for start in range(0, len(windows), BATCH):
            stages = {"extracting": (start, len(windows))}
            self.work.progress(start, len(windows), unit="windows", stages=stages)
            batch = windows[start : start + BATCH]
            for window, extraction in zip(batch, self._batch(batch), strict=True):
                if extraction is not None:
                    listed.append(
                        graph_assembly.mentions(
                            extraction, window.document, window.version, window.chunks, window.embedder
                        )
                    )
            paid, reused = self.work.spent.paid_calls, self.work.spent.reused_calls
            read = min(start + BATCH, len(windows))
            self.work.note(f"{read} of {len(windows)} windows; {paid} calls paid, {reused} reused")
        return listed

    def _batch(self, windows: Sequence[DocumentWindow]) -> list[Extraction | None]:
        calls = [graph_answers.extraction_call(self.model, each.text, self.rules) for each in windows]
        answers = model_calls.paid(self.work, calls)
        extractions = [read(answer) for answer in answers]
        self._repair(calls, answers, extractions)
        for window, each in zip(windows, extractions, strict=True):
            if isinstance(each, WorkError):
                self.errors.append((window, each))
        good = [None if isinstance(each, WorkError) else each for each in extractions]
        for _ in range(0 if self.model.stand_in else self.gleanings):
            if not self._glean(calls, answers, good):
                break
        return good

    def _repair(
        self, calls: list[Call], answers: list[bytes | WorkError], read_so_far: list[Extraction | WorkError]
    ) -> None:
        """Answers that could not be read are asked for once more, saying so."""
        wrong = {
            at: model_calls.again(calls[at], answer, graph_answers.COMPLAINT)
            for at, (answer, each) in enumerate(zip(answers, read_so_far, strict=True))
            if is_repairable(answer, each) and isinstance(answer, bytes)
        }
        if not wrong or self.model.stand_in:
            return
        for at, answer in zip(wrong, model_calls.paid(self.work, list(wrong.values())), strict=True):
            repaired = read(answer)
            if not isinstance(repaired, WorkError):
                calls[at], answers[at], read_so_far[at] = wrong[at], answer, repaired

    def _glean(
        self, calls: list[Call], answers: list[bytes | WorkError], good: Sequence[Extraction | None]
    ) -> bool:
        """The model is asked for what it missed; False if it missed nothing."""
        more = {
            at: model_calls.again(calls[at], answer, graph_answers.MORE)
            for at, (answer, each) in enumerate(zip(answers, good, strict=True))
            if each and isinstance(answer, bytes)
        }
        added = False
        for at, answer in zip(
            more, model_calls.paid(self.work, list(more.values())) if more else (), strict=True
        ):
            extraction, own = read(answer), good[at]
            if own is not None and isinstance(extraction, Extraction) and extraction:
                own.add(extraction)
                added = True
            calls[at], answers[at] = more[at], answer
        return added


def is_repairable(answer: bytes | WorkError, extraction: Extraction | WorkError) -> bool:
    """True for an answer that the model gave and nobody can read."""
    return (
        isinstance(answer, bytes)
        and isinstance(extraction, WorkError)
        and extraction.code in {"bad_answer", "answer_cut"}
    )


def read(answer: bytes | WorkError) -> Extraction | WorkError:
    """What an answer says, or why it says nothing. An error that concerns more than this answer is raised."""
    try:
        if isinstance(answer, WorkError):
            raise answer
        return graph_answers.extraction(answer)
    except WorkError as error:
        if error.code not in model_calls.OF_ONE:
            raise
        return error
