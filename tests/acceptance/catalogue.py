"""Every scenario of `holdfast.chaos`, and the one that speaks to the API with the clients of `tests/api`."""

from holdfast.chaos import catalogue
from holdfast.chaos.catalogue import BROKER, DATABASE, Scenario
from tests.acceptance import serving

SERVING = Scenario("14", "uploads while all goes away", serving.faults, keyed=True, own=BROKER | DATABASE)
SCENARIOS = (*catalogue.SCENARIOS, SERVING)
BY_NUMBER = {scenario.number: scenario for scenario in SCENARIOS}
