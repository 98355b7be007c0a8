"""Parameters of notebooks under plain papermill."""

from __future__ import annotations

import pytest

from labkit.errors import SpecError
from labkit.report.notebook import refuse_unknown_parameters

DECLARED = 'sweep = "demo"\nstore = ""'


@pytest.mark.parametrize(
    "cells",
    [
        [DECLARED],
        [DECLARED, '# Parameters\nstore = "elsewhere"\n', "results = Store(store)"],
        ["%matplotlib inline", DECLARED, "# Parameters\nsweep = 3\n"],
        [DECLARED, "other = 1"],
    ],
)
def test_parameters_that_are_declared_and_cells_of_ones_own_pass(cells: list[str]) -> None:
    refuse_unknown_parameters(cells)


def test_an_unknown_parameter_is_named_with_the_nearest() -> None:
    with pytest.raises(
        SpecError, match=r"no parameter 'stroe' \(did you mean 'store'\?\); .*: sweep, store\."
    ):
        refuse_unknown_parameters([DECLARED, '# Parameters\nsweep = "x"\nstroe = "y"\n'])


def test_outside_a_notebook_there_is_nothing_to_refuse() -> None:
    refuse_unknown_parameters()
