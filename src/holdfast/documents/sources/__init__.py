"""Sources of documents: what each type of source holds, and how it is fetched."""
