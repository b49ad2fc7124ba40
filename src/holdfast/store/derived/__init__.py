"""What kinds derive from documents: staged with a slice, published whole, withheld with its documents."""
