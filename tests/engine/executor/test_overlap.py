"""Texts of windows that share some seconds: joined without a word doubled or lost."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.executor.overlap import join_overlap
from oasr.types import RequestOutput, WordTiming

VOCABULARY: dict[str, int] = {}
PIECES: list[str] = []


def ids(text: str) -> tuple[int, ...]:
    """Tokens of a text: each word with the space before it, each ideograph alone."""
    pieces = re.findall(r"\s?[\u3400-\u9fff]|\s*[^\s\u3400-\u9fff]+", text)
    for piece in pieces:
        if VOCABULARY.setdefault(piece, len(PIECES)) == len(PIECES):
            PIECES.append(piece)
    return tuple(VOCABULARY[piece] for piece in pieces)


def decode(tokens) -> str:
    return "".join(PIECES[token] for token in tokens)


def window(text: str, start: float, end: float, times=None) -> RequestOutput:
    """The result of a window; `times` gives each word its middle in seconds."""
    words = None
    if times is not None:
        named = zip(text.split(), times, strict=True)
        words = tuple(WordTiming(word, t - 0.1, t + 0.1, 0.9) for word, t in named)
    tokens = ids(text)
    return RequestOutput(
        "u",
        text=text,
        tokens=(tokens,),
        scores=(-1.0,),
        words=words,
        timestamps=None if times is None else tuple((t - 0.1, t + 0.1) for t in times),
        segments=((start, end, text),),
    )


def joined(before: str, after: str) -> str:
    """Two windows that share 28.5 to 31.5 s, cut at 30 s."""
    left, right = join_overlap(window(before, 0, 31.5), window(after, 28.5, 60), 30.0, decode)
    return f"{left.text} | {right.text}"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c d e f", "c d e f g h", "a b c d | e f g h"),
        # What an edge cuts is misheard; the middle of what both heard counts.
        (
            "we saw the block books wh",
            "lock books which were the first",
            "we saw the block books | which were the first",
        ),
        (
            "in the middle of the fif",
            "diddle of the fifteenth century",
            "in the middle of | the fifteenth century",
        ),
        # Case and marks do not tell words apart.
        ("It was, he said, Late.", "he said late and dark", "It was, he said, | late and dark"),
        # One side hears a word more, or another one.
        ("a b one two x three four", "one two three four five six", "a b one two | three four five six"),
        ("a b one too three four", "one two three four five six", "a b one too three | four five six"),
        # Only one word is shared, right at both edges.
        ("the block books", "books were the first", "the block books | were the first"),
        # The same small word elsewhere is no meeting point.
        (
            "the cat sat on a mat today",
            "and so the dog went home",
            "the cat sat on a mat today | and so the dog went home",
        ),
        # Repetitions: as often as they were said.
        ("so no no no no", "no no no no yes", "so no no | no no yes"),
        ("la la la la la la", "la la la la done", "la la la la | la la done"),
        ("", "a b", " | a b"),
        ("a b", "", "a b | "),
        ("a b c", "a b c", "a b | c"),
        ("他说今天天气很好", "今天天气很好我们出去", "他说今天天 | 气很好我们出去"),
        ("今天天气很好，", "天气很好，我们", "今天天气 | 很好，我们"),
    ],
)
def test_texts_meet_in_the_middle_of_what_both_heard(before, after, expected):
    assert joined(before, after) == expected


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=12, max_size=60),
    st.integers(3, 8),
    st.data(),
)
def test_distinct_words_come_once_and_in_order(numbers, shared, data):
    said = [f"w{i}.{n}" for i, n in enumerate(numbers)]
    at = data.draw(st.integers(shared, len(said) - 1))
    before, after = said[:at], said[at - shared :]
    if data.draw(st.booleans()):
        before = [*before[:-1], "hm"]
    if data.draw(st.booleans()):
        after = ["uh", *after[1:]]
    left, right = join_overlap(
        window(" ".join(before), 0, 31.5), window(" ".join(after), 28.5, 60), 30.0, decode
    )
    assert f"{left.text} {right.text}".split() == said


def test_tokens_words_times_and_segments_go_with_the_text():
    times = [10.0, 20.0, 29.0, 29.6, 30.4, 31.2]
    before = window("a b c d e f", 0, 31.5, times)
    after = window("c d e f g h", 28.5, 60, [*times[2:], 40.0, 50.0])
    left, right = join_overlap(before, after, 30.0, decode)
    assert (left.text, right.text) == ("a b c d", "e f g h")
    assert decode(left.tokens[0]).strip() == left.text and decode(right.tokens[0]).strip() == right.text
    assert [w.word for w in left.words] == list("abcd") and [w.word for w in right.words] == list("efgh")
    assert len(left.timestamps) == 4 and right.timestamps[0] == pytest.approx((30.3, 30.5))
    assert left.segments == ((0, 30.0, "a b c d"),) and right.segments == ((30.0, 60, "e f g h"),)


def test_a_part_that_was_trimmed_inside_a_token_keeps_its_tokens_at_the_next_join():
    def spell(tokens) -> str:
        return "".join(["天气", "很好", "我们", "出去", "玩"][token] for token in tokens)

    part = RequestOutput("u", text="气很好我们出去玩", tokens=((0, 1, 2, 3, 4),), scores=(-1.0,))
    part = replace(part, timestamps=tuple((t, t + 1.0) for t in (28.0, 40.0, 50.0, 59.0, 60.0)))
    part = replace(part, segments=((30.0, 61.5, "气很好我们出去玩"),))
    after = replace(part, text="我们出去玩", tokens=((2, 3, 4),), timestamps=None, segments=((58.5, 90, ""),))
    left, _ = join_overlap(part, after, 60.0, spell)
    assert (left.text, left.tokens) == ("气很好我们出", ((0, 1, 2, 3),)) and len(left.timestamps) == 4
    # Where all of the text is the other's, so is the token that was cut.
    nothing = replace(part, text="气很", tokens=((0, 1),), words=(WordTiming("气很", 61, 62, 0.9),))
    left, _ = join_overlap(nothing, replace(after, text="x", words=()), 60.0, spell)
    assert (left.text, left.tokens) == ("", ((),))


def test_a_character_of_several_tokens_keeps_them_all():
    text = "今天天气很好"
    part = RequestOutput("u", text=text, tokens=(tuple(text.encode()),), scores=(-1.0,))
    before, after = replace(part, segments=((0, 31.5, ""),)), replace(part, segments=((28.5, 60, ""),))
    left, right = join_overlap(before, after, 30.0, lambda tokens: bytes(tokens).decode("utf-8", "replace"))
    assert (left.text, right.text) == ("今天天", "气很好")
    assert bytes(left.tokens[0]).decode() == left.text and bytes(right.tokens[0]).decode() == right.text


def test_without_a_meeting_the_times_decide_and_without_times_all_is_kept():
    before = window("one two three", 0, 31.5, [10.0, 29.0, 30.5])
    after = window("tree four five", 28.5, 60, [29.8, 30.2, 40.0])
    left, right = join_overlap(before, after, 30.0, decode)
    assert (left.text, right.text) == ("one two", "four five")
    left, right = join_overlap(replace(before, words=None), after, 30.0, decode)
    assert (left.text, right.text) == ("one two three", "tree four five")
    assert left.segments[0][1] == right.segments[0][0] == 30.0


def test_a_window_that_lies_wholly_on_one_side_may_lose_all():
    before = window("one two", 0, 31.5, [10.0, 20.0])
    after = window("x y", 28.5, 60, [28.8, 29.0])
    left, right = join_overlap(before, after, 30.0, decode)
    assert (left.text, right.text) == ("one two", "") and right.segments == () and right.tokens == ((),)


def test_a_failed_window_is_left_alone():
    failed = RequestOutput("u", error_stage="decode", error_message="no")
    other = window("a", 28.5, 60)
    assert join_overlap(failed, other, 30.0, decode) == (failed, other)
