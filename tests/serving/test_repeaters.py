"""Defects that repeat: the same class at the same place on three boards running, and nothing else."""

from __future__ import annotations

from serving.repeaters import NUM_BOARDS, Call, Track, follow, reach_px


def boards(*calls: list[Call], reach: float = 16.0) -> tuple[Track, ...]:
    """The tracks after boards a, b, c, ..."""
    tracks: tuple[Track, ...] = ()
    for name, found in zip("abcdefgh", calls, strict=False):
        tracks = follow(tracks, found, inspection_id=name, reach_px=reach)
    return tracks


def repeating(*calls: list[Call], reach: float = 16.0) -> list[tuple[str, ...]]:
    return [track.inspections for track in boards(*calls, reach=reach) if track.is_repeater]


HERE = Call("short", 100.0, 50.0)


def test_three_boards_running_are_a_repeater_and_two_are_not() -> None:
    assert NUM_BOARDS == 3
    assert repeating([HERE], [HERE]) == []
    assert repeating([HERE], [HERE], [HERE]) == [("a", "b", "c")]
    assert repeating([HERE], [HERE], [HERE], [HERE]) == [("b", "c", "d")]


def test_a_board_without_it_begins_the_count_anew() -> None:
    assert repeating([HERE], [HERE], [], [HERE]) == []


def test_another_class_or_another_place_is_another_defect() -> None:
    assert repeating([HERE], [HERE._replace(label="open")], [HERE]) == []
    assert repeating([HERE], [HERE._replace(x=117.0)], [HERE]) == []
    assert repeating([HERE], [HERE._replace(x=115.0)], [HERE]) == [("a", "b", "c")]


def test_a_place_does_not_wander() -> None:
    """Each board is near the one before it, the third is far from the first."""
    assert repeating([HERE], [HERE._replace(x=112.0)], [HERE._replace(x=124.0)]) == []


def test_neighbours_keep_their_own_tracks() -> None:
    near = HERE._replace(x=110.0)
    tracks = boards([HERE, near], [near, HERE], [HERE, near])
    assert {(track.x, track.inspections) for track in tracks} == {
        (100.0, ("a", "b", "c")),
        (110.0, ("a", "b", "c")),
    }


def test_two_calls_at_one_place_of_one_board_count_once() -> None:
    assert repeating([HERE, HERE], [HERE, HERE]) == []


def test_the_reach_is_half_a_millimetre_where_the_scale_is_known() -> None:
    assert reach_px(48.0) == 24.0
    assert reach_px(None) == 16.0
