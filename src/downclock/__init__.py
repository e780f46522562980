"""Downclock."""
