"""Asking: sharing, limits, retries, the store; the only async orchestration."""
