"""The fit of a scaling law finds the law that made the losses, and is not moved by one bad run."""

import numpy as np
import pytest

from tinytx_course.labs.scaling_law import ScalingLaw, bootstrap, fit_law, range_of

LAWS = [
    ScalingLaw(E=1.19, A=40.0, a=0.5, B=3e3, b=0.7),
    ScalingLaw(E=0.3, A=5.0, a=0.25, B=100.0, b=0.35),
    ScalingLaw(E=2.0, A=900.0, a=1.0, B=2e5, b=1.1),
]
N, D = (axis.ravel() for axis in np.meshgrid(np.geomspace(3e3, 3e5, 4), np.geomspace(3e5, 9e6, 5)))


@pytest.mark.parametrize("law", LAWS)
def test_the_law_that_made_the_losses_is_found(law):
    found = fit_law(N, D, law(N, D))
    np.testing.assert_allclose(list(vars(found).values()), list(vars(law).values()), rtol=0.02)
    np.testing.assert_allclose(found(N, D), law(N, D), rtol=1e-4)


@pytest.mark.parametrize("law", LAWS)
def test_a_known_bound_leaves_four_numbers(law):
    found = fit_law(N, D, law(N, D) - law.E, constant=False)
    assert found.E == 0.0
    np.testing.assert_allclose([found.a, found.b], [law.a, law.b], rtol=1e-3)


def test_a_single_bad_run_moves_the_constant_little():
    law, losses = LAWS[0], LAWS[0](N, D)
    losses[7] *= 1.1
    found = fit_law(N, D, losses)
    assert abs(found.E - law.E) < 0.01


def test_ranges_are_those_of_laws_fitted_to_other_runs():
    rng = np.random.default_rng(1)
    losses = LAWS[0](N, D) * np.exp(rng.normal(0, 2e-3, len(N)))
    drawn = [law.E for law in bootstrap(N, D, losses, n_draws=40)]
    low, high = range_of(drawn)
    assert low < LAWS[0].E < high and sum(low <= each <= high for each in drawn) == 38
    assert drawn == [law.E for law in bootstrap(N, D, losses, n_draws=40)]
    assert drawn != [law.E for law in bootstrap(N, D, losses, n_draws=40, seed=1)]
