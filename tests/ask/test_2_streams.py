"""The answer streams. Clients leave, die or ask at the same moment: it is paid once and is not lost."""

import json
import threading

import pytest

QUESTION = "How tall is the Eiffel Tower?"
pytestmark = pytest.mark.g5


def test_the_first_words_arrive_before_the_provider_has_finished(install):
    """Sources, then the first piece while the rest is held back, then checked sentences and the cost."""
    install.meter.hold("during")
    events = install.stream(QUESTION)
    assert events.until("sources")["sources"][0]["title"] in {"Lease", "Towers"}
    assert events.until("delta") == {"text": "The ", "at": 0}
    assert install.meter.totals().open == 1
    install.meter.release()
    rest = list(events)
    heard = "".join(data["text"] for name, data in rest if name == "delta")
    assert heard == "Eiffel Tower is 330 metres tall [1]."
    assert [name for name, _ in rest if name != "delta"] == ["sentence", "done"]
    assert rest[-1][1]["cost"]["paid"] > 0


def test_a_client_that_hangs_up_wastes_nothing(install):
    """The call is read to its end and settled; who asks again hears the same pieces for nothing."""
    install.meter.hold("during")
    events = install.stream(QUESTION)
    events.until("delta")
    events.hang_up()
    install.meter.release()
    install.meter.wait_idle()
    again = list(install.stream(QUESTION))
    pieces = [data["text"] for name, data in again if name == "delta"]
    assert (pieces[0], "".join(pieces)) == ("The ", "The Eiffel Tower is 330 metres tall [1].")
    assert (again[-1][0], again[-1][1]["replayed"], again[-1][1]["cost"]["paid"]) == ("done", True, 0.0)
    assert install.meter.totals().charges == 1


def test_many_who_ask_the_same_at_once_pay_once(install):
    """Eight clients, one charge, eight equal answers."""
    answers = []
    crowd = [threading.Thread(target=lambda: answers.append(install.ask(QUESTION))) for _ in range(8)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    assert {each["answer"] for each in answers} == {"The Eiffel Tower is 330 metres tall [1]."}
    assert sum(not each["replayed"] for each in answers) == 1
    assert install.meter.totals().charges == 1


def test_a_stream_that_breaks_off_is_in_doubt(install):
    """It is not resent behind the asker's back: the order waits for a person, or for a fresh question."""
    install.meter.plan(script=[{"cut_after": 3}])
    events = list(install.stream(QUESTION))
    assert [name for name, _ in events][:2] == ["sources", "delta"]
    assert (events[-1][0], events[-1][1]["code"]) == ("error", "answer_in_doubt")
    orders = install.client.get("orders").json["orders"]
    assert [each["state"] for each in orders] == ["parked"]
    assert install.client.post("collections/shelf/ask", {"question": QUESTION}).code == "answer_in_doubt"
    assert install.meter.totals().charges == 1
    assert install.ask(QUESTION, fresh=True)["replayed"] is False
    assert install.ask(QUESTION)["replayed"] is True
    assert install.meter.totals().charges == 2


def test_a_refusal_is_an_event(quick):
    """Nothing was found: sources, none of them, and the refusal."""
    events = list(quick.stream("xqzvw kkkrt pfffg"))
    assert [name for name, _ in events] == ["sources", "refused"]
    assert events[1][1]["cost"]["paid"] == 0.0


def test_a_failure_before_the_first_event_has_a_status(quick):
    """An unknown collection is 404, also for who install for a stream."""
    response = quick.client.post("ask", {"question": QUESTION, "collections": ["none"], "stream": True})
    assert response.status == 404


def test_a_provider_that_cannot_stream_answers_at_once(quick):
    """A server that ignores `stream` sends one piece; nothing else differs."""
    reply = {"choices": [{"message": {"content": "330 metres [1]."}, "finish_reason": "stop"}]}
    quick.meter.plan(script=[{"body": json.dumps(reply)}])
    events = list(quick.stream(QUESTION, k=1))
    assert [data["text"] for name, data in events if name == "delta"] == ["330 metres [1]."]
    assert events[-1][0] == "done"
