"""The relay: a small process that carries orders for workers. Read `carrying`."""
