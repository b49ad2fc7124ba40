"""Request, wake, claim-run-finish, watchdog and sweep. Independent of Celery and HTTP.

Read `execute`: it is the life of one task. `engine` is the list of verbs for callers.
"""
