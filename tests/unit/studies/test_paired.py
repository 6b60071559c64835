from studies.machines.paired import Runs, lines

CELL = ("mnist-split", "er-p", 500, "abc")
OTHER = ("mnist-split", "er-p", 500, "another spec")


def test_seeds_that_both_have_are_compared_within_a_cell() -> None:
    fresh: Runs = {CELL: {0: 0.82, 1: 0.84, 2: 0.86, 9: 0.1}}
    committed: Runs = {CELL: {0: 0.81, 1: 0.82, 2: 0.83, 3: 0.9}, OTHER: {0: 0.1, 1: 0.1}}
    (told,) = lines(fresh, committed)
    # differences 1, 2 and 3 points: mean 2, standard error 1 / sqrt(3), t = 4.303
    assert told == "mnist-split er-p, 500 slots: +2.00 points [-0.48, +4.48], n = 3"


def test_one_seed_tells_nothing() -> None:
    assert lines({CELL: {0: 0.8, 1: 0.9}}, {CELL: {0: 0.8}}) == []
