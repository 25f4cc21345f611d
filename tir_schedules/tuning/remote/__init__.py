"""Measuring elsewhere: servers, their clients, and what passes between them."""

LOOPBACK = "127.0.0.1"

KEY = "tir_schedules"
"""What clients ask the tracker for unless told otherwise."""
