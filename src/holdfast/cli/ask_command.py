"""`holdfast ask`: an answer as it is written, and below it the passages that it cites.

On a terminal the text appears as the model writes it; in a pipe it comes once, checked. Ctrl-C waits for a
call that is under way, since it is paid for either way; a second one leaves at once.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rich.text import Text

from holdfast.bootstrap import AppServices
from holdfast.cli import context, terminal
from holdfast.cli.exit_codes import Exit
from holdfast.ledger.prices import NANO
from holdfast.search.citations import Support
from holdfast.service import answers, formatting
from holdfast.service.answers import AnswerPiece, AnswerSource, AskRequest, CitedAnswer


def ask(request: AskRequest, *, as_json: bool) -> Exit:
    """The answer is on standard output; NOT_FOUND where there is none."""
    printed = _Printed(is_live=sys.stdout.isatty() and not as_json)
    with context.services(None) as services:
        answer = _to_the_end(lambda: _asked(services, request, printed))
    if as_json:
        terminal.show_json(_fields(answer))
    else:
        printed.end(answer)
        _show(answer)
    return Exit.NOT_FOUND if answer.refused else Exit.OK


def _asked(services: AppServices, request: AskRequest, printed: "_Printed") -> CitedAnswer:
    return services.ask.ask(request, printed.hear)


def _to_the_end(work: Callable[[], CitedAnswer]) -> CitedAnswer:
    """The result of the work, which one interrupt does not end."""
    with ThreadPoolExecutor(1, thread_name_prefix="ask") as pool:
        result = pool.submit(work)
        try:
            return result.result()
        except KeyboardInterrupt:
            terminal.say("waiting for the call under way, which is paid for; Ctrl-C again to leave", err=True)
            try:
                result.exception()
            except KeyboardInterrupt:
                os._exit(Exit.INTERRUPTED)  # the call is in doubt, as after a crash
            raise


class _Printed:
    """What is on the terminal so far."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._has_text = False

    def hear(self, event: tuple[AnswerSource, ...] | AnswerPiece) -> None:
        """A piece of the answer is shown at once."""
        if not self._is_live or not isinstance(event, AnswerPiece):
            return
        if event.at == 0 and self._has_text:
            sys.stdout.write("\n\n(the answer broke off and begins anew)\n\n")
        sys.stdout.write(terminal.harmless(event.text))
        sys.stdout.flush()
        self._has_text = True

    def end(self, answer: CitedAnswer) -> None:
        """The whole answer is shown."""
        if self._has_text:
            terminal.say("\n")
        elif answer.answer:
            terminal.say(f"{answer.answer}\n")


def _show(answer: CitedAnswer) -> None:
    console = terminal.console()
    if answer.reason is not None:
        console.print(answers.SENTENCES[answer.reason], style="care", markup=False)
    cited = {number for sentence in answer.sentences for number in sentence.cites}
    for source in answer.sources if not answer.refused else ():
        line = Text(f"[{source.n}] ", style="quiet")
        line.append(source.title, style="head" if source.n in cited else "quiet")
        page = f", page {source.page}" if source.page is not None else ""
        line.append(f"{page}  document:{source.document_id}", style="quiet")
        console.print(line, soft_wrap=True)
        for passage in source.passages if source.n in cited else ():
            where = f", page {passage.page}" if passage.page is not None else ""
            console.print(
                Text(f"    from {passage.title}{where}  {passage.chunk}", style="quiet"), soft_wrap=True
            )
    for sentence in answer.sentences:
        if sentence.support is Support.NONE:
            console.print(f"not supported: {terminal.one_line(sentence.text)}", style="care", markup=False)
    if answer.unknown_citations:
        removed = formatting.count(answer.unknown_citations, "citation")
        console.print(f"{removed} that named no source: removed", style="care")
    for notice in answer.notices:
        console.print(terminal.one_line(notice.message), style="care", markup=False)
    if answer.stand_in and not (answer.refused and not answer.sources):
        console.print(
            "answered by the built-in stand-in, which quotes and is no language model", style="care"
        )
    console.print(_cost(answer), style="quiet")


def _cost(answer: CitedAnswer) -> str:
    if answer.replayed and not answer.cost.tokens:
        return f"replayed, cost nothing (saved {formatting.money(answer.cost.saved)})"
    if answer.refused and not answer.cost.tokens:
        return "cost nothing"
    return f"paid {formatting.paid(answer.cost.paid, int(answer.cost.unpriced))}"


def _fields(answer: CitedAnswer) -> dict[str, object]:
    """As the API has it."""
    fields: dict[str, object] = terminal.plain(answer)
    sources = [
        {name: value for name, value in terminal.plain(each).items() if name != "text"}
        for each in answer.sources
    ]
    cost = answer.cost
    paid = None if cost.unpriced and not cost.paid else cost.paid / NANO
    money = {"paid": paid, "saved": cost.saved / NANO, "tokens": cost.tokens}
    return fields | {"sources": sources, "cost": money}
