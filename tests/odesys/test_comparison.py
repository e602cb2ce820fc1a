"""Theory held to runs, with courses whose difference is known by hand."""

import math

import numpy as np
import pytest
import sympy as sp
import xarray as xr

from odesys.clock import Clock
from odesys.comparison import check_order, compare, identity, order_of_convergence

TIMES = np.linspace(0.0, 2.0, 201)


def course(dim="time", at=TIMES, **variables):
    return xr.Dataset({name: (dim, values) for name, values in variables.items()}, coords={dim: at})


def test_the_error_is_the_largest_one_relative_to_the_theorys_range():
    # The theory runs over 4, the run is off by 0.5 at one instant and by less elsewhere: 1/8.
    run = 2 * TIMES.copy()
    run[50] += 0.5
    run[60] -= 0.25
    (check,) = compare(
        course(u=2 * TIMES), course(u=run), tolerance=0.125, reason="by hand", study="s", source="p"
    )
    assert check.measured == pytest.approx(0.125, rel=1e-12)
    assert (check.name, check.expected, check.tolerance) == ("flow: u", 0.0, 0.125)
    assert (check.study, check.source) == ("s", "p")
    assert check.reason == "by hand; largest relative error at 201 instants"


def test_steps_become_times_through_the_clock():
    # Step k is at t = k/100, so the run x = k^2/10^4 is x = t^2: no error but rounding.
    steps = np.arange(0, 201, 5)
    run = course("step", steps, x=steps**2 / 1e4)
    (check,) = compare(course(x=TIMES**2), run, clock=Clock(0.01))
    assert check.name == "descent: x"
    assert check.measured == pytest.approx(0, abs=1e-14)
    assert (check.tolerance, check.passed) == (0.02, True)
    assert "2 % of the theory's range" in check.reason


def test_a_wrong_clock_is_caught():
    # x = t^2 read at 1.1 t is off by 0.21 t^2, largest at the last step that the theory still covers.
    steps = np.arange(0, 201, 5)
    run = course("step", steps, x=steps**2 / 1e4)
    (check,) = compare(course(x=TIMES**2), run, clock=Clock(0.011))
    last = 0.011 * 180
    assert check.measured == pytest.approx((last**2 - 1.8**2) / 4, rel=1e-9)
    assert not check.passed


def test_flows_have_a_tight_default():
    (check,) = compare(course(u=TIMES), course(u=TIMES))
    assert (check.tolerance, check.passed) == (1e-6, True)
    assert "default rtol" in check.reason


def test_instants_outside_the_theorys_range_are_left_out():
    at = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    (check,) = compare(course(u=TIMES), course(at=at, u=np.array([9.0, 0.0, 1.0, 2.0, 9.0])))
    assert check.measured == 0
    assert "at 3 instants" in check.reason


def test_other_instants_are_interpolated():
    # A cubic spline reads a cubic exactly; these instants are not on the theory's grid.
    at = np.array([0.0031, 0.7777, 1.9])
    (check,) = compare(course(u=TIMES**3 - TIMES), course(at=at, u=at**3 - at))
    assert check.measured == pytest.approx(0, abs=1e-14)


def test_interpolation_error_falls_with_the_fourth_power():
    def error(step):
        grid = np.arange(0, 2 + step / 2, step)
        middle = grid[:-1] + step / 2
        theory, run = course(at=grid, u=np.sin(9 * grid)), course(at=middle, u=np.sin(9 * middle))
        return compare(theory, run, tolerance=0.1)[0].measured

    # A cubic spline is of order four; the next term of the expansion is small at these steps.
    steps = [1 / 80, 1 / 160, 1 / 320]
    assert order_of_convergence(steps, [error(step) for step in steps]) == pytest.approx(4, abs=0.1)


def test_a_coarse_theory_is_not_interpolated():
    grid = np.linspace(0, 2, 21)
    with pytest.raises(
        ValueError, match=r"21 instants are too few to interpolate 'u' .* Evaluate the theory on"
    ):
        compare(course(at=grid, u=np.sin(9 * grid)), course(at=TIMES[:-1] + 1e-3, u=TIMES[:-1]))
    with pytest.raises(ValueError, match="3 instants are too few"):
        compare(course(at=[0.0, 1.0, 2.0], u=[0.0, 1.0, 2.0]), course(at=[0.5, 1.5], u=[0.5, 1.5]))


def test_a_constant_theory_is_held_relative_to_its_size():
    (check,) = compare(course(u=np.full(201, -4.0)), course(u=np.full(201, -3.0)))
    assert check.measured == 0.25
    (check,) = compare(course(u=np.zeros(201)), course(u=np.full(201, 0.5)))
    assert check.measured == 0.5


def test_a_run_of_nan_fails():
    run = TIMES.copy()
    run[3] = math.nan
    (check,) = compare(course(u=TIMES), course(u=run))
    assert math.isnan(check.measured)
    assert not check.passed


def test_further_dims_are_matched_by_name():
    values = np.stack([TIMES, 3 * TIMES], axis=1)
    theory = xr.Dataset({"v": (("time", "head"), values)}, coords={"time": TIMES})
    run = xr.Dataset({"v": (("head", "time"), values.T + np.array([[0.0], [0.6]]))}, coords={"time": TIMES})
    (check,) = compare(theory, run)
    assert check.measured == pytest.approx(0.1, rel=1e-12)
    with pytest.raises(
        ValueError, match=r"'v' has the sizes \{'time': 201, 'head': 2\} .* Select the same entries"
    ):
        compare(theory, run.isel(head=[0]))


def test_all_shared_variables_are_compared_in_order():
    theory, run = course(b=TIMES, a=TIMES, c=TIMES), course(a=TIMES, b=TIMES, d=TIMES)
    assert [check.name for check in compare(theory, run)] == ["flow: a", "flow: b"]
    assert [check.name for check in compare(theory, run, variables=["b"])] == ["flow: b"]


def test_labels_and_constants_are_not_compared():
    more = {"kind": ("time", np.full(201, "saddle")), "rate": 0.5}
    assert [check.name for check in compare(course(u=TIMES).assign(more), course(u=TIMES).assign(more))] == [
        "flow: u"
    ]


def test_the_theorys_own_instants_are_read_up_to_rounding_and_not_interpolated():
    # Three instants are too few for a spline. The run's are off by rounding, also at the ends.
    grid = np.array([10.0, 11.0, 12.0])
    (check,) = compare(course(at=grid, u=grid**2), course(at=grid * [1 - 1e-15, 1, 1 + 1e-15], u=grid**2))
    assert (check.measured, "at 3 instants" in check.reason) == (0, True)
    with pytest.raises(ValueError, match="3 instants are too few"):
        compare(course(at=grid, u=grid**2), course(at=grid[:2] + 1e-9, u=grid[:2] ** 2))


@pytest.mark.parametrize(
    ("theory", "run", "options", "message"),
    [
        (course(u=TIMES), course("step", u=TIMES), {}, r'counts steps \(dim "step"\), so a clock is needed'),
        (course(u=TIMES), course(u=TIMES), {"clock": Clock(1.0)}, "leave `clock` out"),
        (course("t", u=TIMES), course(u=TIMES), {}, r'theory must have the dim "time"; it has \[\'t\'\]'),
        (
            course(u=TIMES),
            course("t", u=TIMES),
            {},
            r'run must have the dim "step" or "time"; it has \[\'t\'\]',
        ),
        (course(u=TIMES), course(v=TIMES), {}, r"share no variable: \['u'\] against \['v'\]"),
        (
            course(u=TIMES, w=TIMES),
            course(u=TIMES),
            {"variables": ["w"]},
            r"\['w'\] are not in both; the theory has \['u', 'w'\], the run \['u'\]",
        ),
        (course(u=TIMES), course(u=TIMES), {"variables": "u"}, "must be a non-empty list of names; got 'u'"),
        (course(u=TIMES), course(u=TIMES), {"variables": []}, r"must be a non-empty list of names; got \[\]"),
        (course(u=TIMES), course(at=TIMES + 5, u=TIMES), {}, r"spans \[5, 7\], lie in the .* \[0, 2\]"),
        (course(u=TIMES), course(at=TIMES + 2, u=TIMES), {}, "Fewer than two instants of the run"),
        (course(u=np.full(201, np.nan)), course(u=TIMES), {}, "theory's 'u' holds nan or infinity"),
        (course(at=TIMES[::-1], u=TIMES), course(u=TIMES), {}, "at least two instants in increasing order"),
        (course(at=[0.0, 1.0, 1.0], u=[0.0, 1.0, 1.0]), course(u=TIMES), {}, "in increasing order; got 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(theory, run, options, message):
    with pytest.raises(ValueError, match=message):
        compare(theory, run, **options)


def test_the_order_of_a_power_law():
    steps = np.array([0.1, 0.05, 0.025])
    assert order_of_convergence(steps, 7 * steps**3) == pytest.approx(3, rel=1e-12)
    check = check_order("descent: order", steps, 7 * steps**3, order=3, tolerance=0.1, reason="exact")
    assert (check.measured, check.passed) == (pytest.approx(3), True)
    assert not check_order("descent: order", steps, steps**2, order=3, tolerance=0.1, reason="exact").passed


@pytest.mark.parametrize(
    ("steps", "errors", "message"),
    [
        ([1.0, 1.0], [1.0, 1.0], "at least two different steps"),
        ([1.0, 2.0], [1.0], "got 2 steps and 1 errors"),
        (
            [1.0, 2.0],
            [1.0, 0.0],
            r"`errors` must be positive and finite, to have logarithms; got \[1\.0, 0\.0\]",
        ),
        ([1.0, math.nan], [1.0, 1.0], "`steps` must be positive and finite"),
    ],
)
def test_an_order_needs_positive_numbers(steps, errors, message):
    with pytest.raises(ValueError, match=message):
        order_of_convergence(steps, errors)


def test_identities_are_counted_when_unproven():
    x = sp.Symbol("x", real=True)
    exact = [(x + 1) ** 2 - x**2 - 2 * x - 1, sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1]
    good = identity("derive: algebra", exact)
    assert (good.measured, good.tolerance, good.passed) == (0, 0, True)
    bad = identity("derive: algebra", [*exact, x - 1])
    assert (bad.measured, bad.passed) == (1, False)
    with pytest.raises(ValueError, match="'derive: algebra' has no residuals"):
        identity("derive: algebra", [])
