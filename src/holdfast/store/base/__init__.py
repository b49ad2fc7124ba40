"""The foundation of the store: the database, its two dialects, statements, rows, journal, tables."""
