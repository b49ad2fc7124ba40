"""`make chaos`: every scenario of Holdfast and of this folder, on servers of `make services-up`."""

import sys

from holdfast.chaos import harness
from tests.acceptance.catalogue import SCENARIOS
from tests.acceptance.servers import all_servers

if __name__ == "__main__":
    sys.exit(harness.main(all_servers(), SCENARIOS, program="make chaos"))
