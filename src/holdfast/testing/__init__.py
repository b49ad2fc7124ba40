"""What tests, benchmarks and chaos runs need that is not a test: nothing in the product imports it."""
