"""Paid calls: intents, orders, charges, budgets, and the bill."""
