"""The Celery shell around the engine: app, broker profiles, two tasks, signals, health.

A broker message is only a wake-up. Celery's own states, results and retries are never authoritative: whatever
happens to a message, the database knows what is due, and the sweep sends another wake-up.
"""
