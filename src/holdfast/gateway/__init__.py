"""The gateway: OpenAI's and Anthropic's interfaces in front of the ledger, for any program.

Read `gateway`; `flights` is a call under way with everybody who waits for it.
"""
