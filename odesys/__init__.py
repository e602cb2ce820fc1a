"""RUN: numbers."""
