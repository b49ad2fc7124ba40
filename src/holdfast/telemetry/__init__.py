"""What a process tells of its work while it does it: the fields of log lines, and traces."""
