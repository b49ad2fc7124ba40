"""Finds configurations of Celery, its brokers and databases that pay twice or lose work, before they do.

`probes` gather `facts` and change nothing. Each check of `catalogue` is a pure function over the facts, and
says what was seen, why it hurts and what to paste. Nothing here needs a database of Holdfast: the command is
also for applications that use nothing else of it, so drivers are imported by the probe that uses them.
"""
