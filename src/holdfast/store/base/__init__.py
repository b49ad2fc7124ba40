"""What every room stands on: the database, its two dialects, statements, rows, the journal and the tables."""
