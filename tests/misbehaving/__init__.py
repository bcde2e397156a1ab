"""Implementations that go wrong in every way that one can."""
