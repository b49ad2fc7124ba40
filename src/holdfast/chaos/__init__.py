"""Incidents on purpose: scenarios that kill, freeze and cut off real workers, and what that has cost.

One place for every scenario (`catalogue`), with stacks to run them on (`stacks`, `servers`), a harness that
plays them and prints the table (`harness`), and an oracle that judges from the outside (`evidence`,
`oracle`). Nothing else in Holdfast imports this package. `python -m holdfast.chaos` plays all that need no
server; `make chaos` passes servers in and plays everything.
"""
