"""The protocol: requests, claims, the fence, staging, publishing, and what the sweep puts right."""
