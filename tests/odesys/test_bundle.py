"""Many lines at once: order of convergence, direction, and why each line ends."""

import numpy as np
import pytest

from odesys.integrators.bundle import trace


def rotation(y):
    return np.stack([y[1], -y[0]])


def never(place, states, slopes):
    return np.zeros(place.shape, dtype=bool)


def test_error_follows_the_tolerance():
    # cos and sin are known. The error of a method of order 5 with an estimate of order 5 (per step) is
    # proportional to tolerance^(4/5) at least; from 1e-6 to 1e-10 it must fall by 10^3.2 or more.
    lengths = np.array([20.0, -20.0])
    starts = np.array([[1.0, 1.0], [0.0, 0.0]])
    errors = []
    for tolerance in (1e-6, 1e-10):
        ends = trace(rotation, starts, lengths, never, tolerance=tolerance).ends
        exact = np.array([np.cos(lengths), -np.sin(lengths)])
        errors.append(np.max(np.abs(ends - exact)))
    assert errors[0] < 1e-4
    assert errors[1] < errors[0] / 10**3.2


def test_lines_are_independent_of_their_company():
    # Each line has its own steps: with others beside it, it is the same line to the last bit but for the
    # order of additions.
    starts = np.array([[1.0, 1e-3, 5.0], [0.0, 2.0, -1.0]])
    together = trace(rotation, starts, np.array([3.0, 7.0, 1.0]), never)
    alone = trace(rotation, starts[:, 1:2], np.array([7.0]), never)[0]
    np.testing.assert_allclose(together[1].states[:, -1], alone.states[:, -1], rtol=1e-13, atol=1e-13)
    assert [line.parameter[-1] for line in together] == pytest.approx([3.0, 7.0, 1.0])


def test_negative_lengths_go_back():
    (line,) = trace(rotation, np.array([[1.0], [0.0]]), np.array([-1.0]), never)
    np.testing.assert_allclose(line.states[:, -1], [np.cos(1), np.sin(1)], atol=1e-7)
    np.testing.assert_allclose(line.slopes[:, 0], [0.0, 1.0])


def test_interpolation_is_as_good_as_the_steps():
    (line,) = trace(rotation, np.array([[1.0], [0.0]]), np.array([6.0]), never)
    fine = np.linspace(0.0, 6.0, 1001)
    # Steps of about 0.1: h^4 / 384 = 3e-7 for the cubic between them.
    np.testing.assert_allclose(line.at(fine), [np.cos(fine), -np.sin(fine)], atol=1e-6)
    assert np.max(np.hypot(*np.diff(line.evenly(0.01)))) < 0.0101


def test_a_bundle_is_its_lines():
    lengths = np.array([1.0, -3.0, 0.2])
    bundle = trace(rotation, np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 1.0]]), lengths, never)
    assert len(bundle) == 3
    np.testing.assert_array_equal(bundle.starts, [[1.0, 2.0, 0.5], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(bundle.ends[:, 1], bundle[1].states[:, -1])
    parameters = np.array([[0.0, 1.5, 3.0], [0.0, 0.1, 0.2]])
    together = bundle.at(np.array([1, 2]), parameters)
    for column, place in enumerate((1, 2)):
        np.testing.assert_allclose(
            together[:, column], bundle[place].at(parameters[column]), rtol=0, atol=1e-15
        )


def test_why_lines_end():
    def field(y):  # to the right at speed 1, until it is not defined beyond x = 1
        return np.stack([np.where(y[0] <= 1, 1.0, np.nan), np.zeros(y.shape[1])])

    lines = trace(
        field,
        np.array([[0.0, 0.9, 0.0], [0.0, 0.0, 1.0]]),
        np.array([0.5, 0.5, 0.5]),
        lambda place, states, slopes: (states[1] == 1) & (states[0] > 0.25),
        largest=0.1,
    )
    assert [line.stop for line in lines] == ["length", "stalled", "halted"]
    # Within the smallest step of the edge.
    assert lines[1].states[0, -1] == pytest.approx(1.0, abs=1e-6)


def test_steps_may_be_used_up():
    (line,) = trace(rotation, np.array([[1.0], [0.0]]), np.array([100.0]), never, max_steps=5)
    assert line.stop == "steps"


def test_a_jump_stalls_a_line_and_no_other():
    def field(y):  # both sides of x = 0 push towards it
        return np.stack([-np.sign(y[0]), np.ones(y.shape[1])])

    lines = trace(field, np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([2.0, 2.0]), never)
    assert [line.stop for line in lines] == ["stalled", "length"]
    assert lines[0].states[:, -1] == pytest.approx([0.0, 1.0], abs=2e-6)


def test_no_lines():
    assert list(trace(rotation, np.empty((2, 0)), np.empty(0), never)) == []
