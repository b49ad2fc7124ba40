"""`holdfast demo`: real workers, killed and frozen on purpose, at a provider that counts every charge.

`story` is what is told, `guarded` and `unguarded` what is done, `cast` the processes, `worker` and
`plain_loop` what runs in them.
"""
