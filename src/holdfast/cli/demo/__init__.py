"""`holdfast demo`: real workers, killed and frozen on purpose, at a provider that counts every charge.

`story` is the script, `guarded` and `unguarded` play it with and without Holdfast, `processes` starts the
processes, `worker` and `plain_loop` run in them.
"""
