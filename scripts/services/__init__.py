"""Private PostgreSQL, Redis and RabbitMQ for tests and development, on loopback and free ports.

`python -m scripts.services up | down | status | env | run -- COMMAND`, standard library only.
Everything lives in `.services/` of the checkout; `services.json` there says what is up and where. `down`
stops by process id what `up` started, and nothing else, and removes its data: each `up` starts from
nothing, except after a crash, where it starts again on the data that was left.
"""
