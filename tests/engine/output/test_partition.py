"""The cheapest grouping, against all groupings."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st
from oasr.output.partition import cheapest_groups


def every_grouping(count):
    for size in range(count):
        for cuts in combinations(range(1, count), size):
            yield list(pairwise((0, *cuts, count)))


@given(data=st.data(), count=st.integers(1, 7))
def test_the_sum_is_the_least_of_all(data, count):
    cost = st.integers(0, 9)
    table = [data.draw(st.lists(cost, min_size=1, max_size=count - begin)) for begin in range(count)]
    allowed = [g for g in every_grouping(count) if all(end - begin <= len(table[begin]) for begin, end in g)]
    found = cheapest_groups(count, lambda begin: table[begin])
    totals = [sum(table[begin][end - begin - 1] for begin, end in grouping) for grouping in allowed]
    assert found in allowed and totals[allowed.index(found)] == min(totals)


def test_nothing_has_no_groups_and_ties_go_to_the_shorter_first_group():
    assert cheapest_groups(0, lambda begin: [1]) == []
    assert cheapest_groups(3, lambda begin: [1, 1][: 3 - begin]) == [(0, 1), (1, 3)]
