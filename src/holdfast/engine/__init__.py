"""Request, wake, claim-run-finish, watchdog and sweep. Knows neither Celery nor HTTP.

Read `execute`: it is the life of one task. `engine` is the list of verbs a caller has.
"""
