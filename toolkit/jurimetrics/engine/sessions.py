"""A session that begins with what a store knows of endpoints, and leaves there what it learned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jurimetrics.engine.store import Store
from jurimetrics.judges.session import Session


@asynccontextmanager
async def opened(store: Store, *, widened: bool) -> AsyncIterator[Session]:
    """A session, closed at the end, whatever comes; `widened`: prompts that were too long are tried again."""
    session = Session(store.learned(), widened=widened)
    try:
        yield session
    finally:
        store.keep_learned(session.learned)
        await session.close()
