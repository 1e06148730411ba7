"""What is kept in memory is bounded, and made once however many ask for it at the same time."""

from __future__ import annotations

import asyncio

import pytest

from serving.kept import Kept


def test_the_least_recently_used_go_first_and_the_newest_stays_whatever_its_size() -> None:
    kept: Kept[bytes] = Kept(10, len)
    for name in ("a", "b", "c"):
        kept.add((name,), b"xxx")
    assert kept.find(("a",)) == b"xxx"
    kept.add(("d",), b"xxxx")
    assert [kept.find((name,)) is not None for name in "abcd"] == [True, False, True, True]
    assert kept.size == 10
    kept.add(("d",), b"x")
    assert (len(kept), kept.size) == (3, 7)
    kept.add(("e",), b"x" * 50)
    assert (len(kept), kept.size) == (1, 50)


def test_what_is_being_made_is_not_made_again() -> None:
    kept: Kept[bytes] = Kept(100, len)
    made: list[str] = []

    async def make() -> bytes:
        made.append("started")
        await asyncio.sleep(0.01)
        return b"value"

    async def ask() -> list[bytes]:
        return await asyncio.gather(*(kept.get(("one",), make) for _ in range(5)))

    assert asyncio.run(ask()) == [b"value"] * 5
    assert made == ["started"]


def test_a_failure_reaches_its_own_caller_and_the_next_one_tries_again() -> None:
    kept: Kept[bytes] = Kept(100, len)
    tries = iter([RuntimeError("gone"), b"value"])

    async def make() -> bytes:
        answer = next(tries)
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    async def ask() -> list[object]:
        asked = (kept.get(("one",), make) for _ in range(2))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    first, second = asyncio.run(ask())
    assert isinstance(first, RuntimeError)
    assert second == b"value"
    with pytest.raises(StopIteration):
        next(tries)
