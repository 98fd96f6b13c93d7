"""Agents: how a seat asks its model for its turn."""
