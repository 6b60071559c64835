from dataclasses import dataclass

from recollect.paper.cells import requests_for


@dataclass(frozen=True)
class Wanted:
    benchmark: str
    method: str
    capacity: int
    passes: str


def test_cells_of_a_table_become_requests_seed_by_seed() -> None:
    wanted = [
        Wanted("mnist-split", "er", 500, "joint"),
        Wanted("mnist-split", "er", 250, "separate"),
        Wanted("mnist-split", "van", 500, "joint"),
        Wanted("mnist-split", "van", 250, "joint"),  # the same cell: it has no memory
    ]
    asked = requests_for(wanted, range(2))
    assert [(r.seed, r.cell.method, r.cell.capacity) for r in asked] == [
        *[(0, "er", 500), (0, "er", 250), (0, "van", 0)],
        *[(1, "er", 500), (1, "er", 250), (1, "van", 0)],
    ]
    assert asked[1].cell.learner["passes"] == "separate"
    assert "--set learner.passes=separate" in asked[1].command
