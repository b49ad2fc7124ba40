"""Prices for tests: the default ones, and one for every other model, so that each call appears in a bill."""

from dataclasses import replace

from holdfast.ledger.prices import DEFAULT, Price, dollars

PRICES = replace(DEFAULT, unknown=Price(dollars(5.0), dollars(20.0)))
