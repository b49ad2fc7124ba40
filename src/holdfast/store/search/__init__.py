"""What search reads, in one snapshot."""
