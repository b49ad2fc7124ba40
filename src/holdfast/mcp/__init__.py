"""Collections as tools of a language model (Model Context Protocol): over stdio, and at `/mcp` of the API."""
