"""The only way to a paid provider. Read `pay`; `prices` says what calls cost."""
