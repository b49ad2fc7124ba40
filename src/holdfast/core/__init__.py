"""Pure decisions: words, states, records and rules. No clock, no I/O, no third party.

Read in this order: `states`, `records`, `decide`, then `keys`, `progress` and `retry`.
"""
