"""Numeric vectors, answered by the functions that training uses: ``python -m evr1_core.conformance FILE.jsonl``."""
