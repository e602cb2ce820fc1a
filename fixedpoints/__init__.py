"""EXPLAIN: where a flow stops and what it does there."""
