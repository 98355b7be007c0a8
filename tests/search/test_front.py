"""The front against every mix there is."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from labkit.search.front import Cost, Point, front

COST = st.builds(
    Cost, st.integers(0, 3), st.integers(-2, 2), st.integers(0, 8).map(lambda n: n / 8), st.just(0.25)
)


def every_mix(layers: list[dict[str, Cost]]) -> list[Point]:
    mixes = []
    for names in itertools.product(*layers):
        costs = [layer[name] for layer, name in zip(layers, names, strict=True)]
        sums = [sum(getattr(cost, part) for cost in costs) for part in ("size", "time", "kl", "mel2")]
        mixes.append(Point(tuple(names), *sums))
    return mixes


@given(st.lists(st.fixed_dictionaries({"a": COST, "b": COST, "c": COST}), min_size=1, max_size=4))
def test_the_front_is_all_that_no_mix_beats(layers: list[dict[str, Cost]]) -> None:
    mixes = every_mix(layers)
    wanted = {(m.size, m.time, m.kl) for m in mixes if not any(other.beats(m) for other in mixes)}
    found = front(layers)
    assert {(p.size, p.time, p.kl) for p in found} == wanted
    by_choice = {mix.precisions: mix for mix in mixes}
    assert all(by_choice[point.precisions] == point for point in found)


def test_layers_of_one_shape_make_few_states() -> None:
    sizes = {"fp32": 32, "int8": 9, "int4": 5}
    layers = [
        {name: Cost(size, size, 0.0 if name == "fp32" else (i + 1) / size) for name, size in sizes.items()}
        for i in range(20)
    ]
    found = front(layers)
    assert 21 <= len(found) <= 231
    assert found[0].precisions == ("int4",) * 20 and found[-1].precisions == ("fp32",) * 20
    one_wider = next(
        point for point in found if point.precisions.count("int8") == 1 and "fp32" not in point.precisions
    )
    assert one_wider.precisions.index("int8") == 19  # the layer that minds most
