"""Intervals and tests, each answering None with a reason where it cannot answer."""
