"""Answers that are kept in memory, bounded, and made once however many ask for them at the same time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
Key = tuple[object, ...]


class Kept(Generic[T]):
    """Least recently used values by key, up to a total size; the newest is kept whatever its size."""

    def __init__(self, capacity: int, size_of: Callable[[T], int]) -> None:
        self.size = 0
        self._capacity = capacity
        self._size_of = size_of
        self._values: OrderedDict[Key, T] = OrderedDict()
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._values)

    def turn(self, key: Key) -> asyncio.Lock:
        """Hold it while making what belongs to a key. Take it before a turn at the model, never after."""
        return self._turns.setdefault(key, asyncio.Lock())

    def find(self, key: Key) -> T | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def add(self, key: Key, value: T) -> None:
        if key in self._values:
            self.size -= self._size_of(self._values.pop(key))
        self._values[key] = value
        self.size += self._size_of(value)
        while self.size > self._capacity and len(self._values) > 1:
            self.size -= self._size_of(self._values.popitem(last=False)[1])

    async def get(self, key: Key, make: Callable[[], Awaitable[T]]) -> T:
        """The value of a key, made if it is not there. What `make` raises reaches its own caller alone."""
        async with self.turn(key):
            value = self.find(key)
            if value is None:
                value = await make()
                self.add(key, value)
            return value
