"""The one door to a paid provider. Read `pay`; `prices` says what things cost."""
