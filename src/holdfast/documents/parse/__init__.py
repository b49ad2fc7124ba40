"""Parses files of any supported format into pages of blocks. `parser.Parser` is the entry point.

Everything that involves C code or a ZIP archive runs in a child process (`child`) with limits on time and
memory, and so does large text; small text and Markdown are parsed in the calling process.
"""
