"""The protocol: requests, claims, the fence, staging, publishing, and the repairs made by the sweep."""
