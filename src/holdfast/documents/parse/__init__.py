"""From bytes to pages of blocks, whatever the format. `parser.Parser` is the face; the rest serves it.

Everything that C code or a zip archive has a part in runs in a child process (`child`) with limits on time
and memory, and so does large text; small text and Markdown are read where they are asked for.
"""
