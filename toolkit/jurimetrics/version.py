"""The version of the toolkit."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("jurimetrics")
"""The version of the installed distribution; kept in results, so that one can say what made them."""
