"""Bounds of softmax regression: exact constants, attained where they say so, never beaten, and the published beside."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from references import reference

from symbolic import lipschitz
from symbolic.lipschitz import R, b_norm, beta, n
from symbolic.softmax_regression import vector

REFERENCE = reference("softmax_regression")
SAMPLES = REFERENCE["lipschitz"]


def row(name, **values):
    (found,) = [bound for bound in lipschitz.table(**values) if bound.name == name]
    return found


class TestKappa:
    def test_by_hand(self):
        # max and min of 4 p^2 (1 - p) (2 - 3 p): 12 p^2 - 15 p + 4 = 0, p = (15 -+ sqrt 33)/24.
        for sign, side in ((-1, "largest"), (1, "smallest")):
            p = (15 + sign * sp.sqrt(33)) / 24
            assert sp.expand(lipschitz.kappa(side=side) - 4 * p**2 * (1 - p) * (2 - 3 * p)) == 0

    def test_ball_by_hand(self):
        # With z = 1 - 2 p = sqrt(2) y: (1 - 2 y^2)(1 - 4 y - 6 y^2)/4, stationary at y = 1/2 and (-3 + sqrt 3)/6.
        value = lambda y: sp.expand((1 - 2 * y**2) * (1 - 4 * y - 6 * y**2) / 4)  # noqa: E731
        assert (
            lipschitz.kappa(target="ball", side="smallest") == value(sp.Rational(1, 2)) == -sp.Rational(5, 16)
        )
        largest = lipschitz.kappa(target="ball")
        assert sp.expand(largest - value((-3 + sp.sqrt(3)) / 6)) == 0
        assert sp.expand(largest - (3 + 2 * sp.sqrt(3)) / 18) == 0

    @pytest.mark.parametrize("target", ["simplex", "ball"])
    @pytest.mark.parametrize(("side", "suffix"), [("largest", "max"), ("smallest", "min")])
    @pytest.mark.parametrize("rows", [2, 3, 4, 6])
    def test_numerical_optima_for_more_rows_are_the_same(self, rows, target, side, suffix):
        """The file's multi-start optima in double precision; they agree to 1e-14."""
        got = float(lipschitz.kappa(target=target, side=side))
        assert got == pytest.approx(
            REFERENCE["kappa_universal"][f"{target}_n{rows}_{suffix}"]["val"], abs=1e-14
        )

    def test_third_derivative(self):
        for value in REFERENCE["kappa3_universal"].values():
            assert float(lipschitz.kappa3()) == pytest.approx(value, abs=1e-14)

    def test_attained(self):
        """A = R (1, -1)^T/sqrt(2), b = e_2, f_1 = p: the Hessian is kappa |A|^2, in exact arithmetic."""
        p = (15 - sp.sqrt(33)) / 24
        size = sp.Rational(3)
        A = [[size / sp.sqrt(2)], [-size / sp.sqrt(2)]]
        model = vector.model(n=2, d=1).at(A, [0, 1])
        # f_1/f_2 = p/(1 - p) = exp((a_1 - a_2) x).
        x = sp.log(p / (1 - p)) / (size * sp.sqrt(2))
        got = model.hessian[0].subs(model.x[0], x).evalf(30)
        assert abs(got - (lipschitz.kappa() * size**2).evalf(30)) < sp.Float("1e-28")

    @pytest.mark.parametrize("target", ["simplex", "ball"])
    def test_no_point_of_a_grid_beats_it(self, target):
        """On the 41 x 21 grid of (p, b_1 - b_2) the eigenvalue stays between the two constants; 1e-15 rounding."""
        reach = 1.0 if target == "simplex" else math.sqrt(2)
        low, high = (float(lipschitz.kappa(target=target, side=side)) for side in ("smallest", "largest"))
        for i in range(41):
            for j in range(21):
                p, e = i / 40, reach * (j - 10) / 10
                value = 2 * p * (1 - p) * (2 * p * (1 - p) + (1 - 2 * p) * (2 * p - 1 - e))
                assert low - 1e-15 <= value <= high + 1e-15

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"target": "cube"}, "must be 'simplex' or 'ball'; got 'cube'"), ({"side": "top"}, "got 'top'")],
    )
    def test_refuses(self, options, message):
        with pytest.raises(ValueError, match=message):
            lipschitz.kappa(**options)


class TestSoftmax:
    def test_half_the_norm_for_two_opposite_rows(self):
        # A = (1, -1)^T/sqrt(2): |A| = 1, constant 1/2.
        assert lipschitz.of_softmax([[1 / sp.sqrt(2)], [-1 / sp.sqrt(2)]]) == sp.Rational(1, 2)

    def test_by_hand_for_three_rows(self):
        # The farthest rows of (0, 4, 5) are 5 apart: 5 sqrt(2)/4.
        assert lipschitz.of_softmax([[0], [4], [5]]) == 5 * sp.sqrt(2) / 4

    def test_attained_at_an_edge(self):
        """|S(f) A| at f = (1/2, 0, 1/2), the rows being those of the pair; a shift of all rows changes nothing."""
        A = sp.Matrix([[0, 1], [2, 2], [3, -1]])
        f = sp.Matrix([sp.Rational(1, 2), 0, sp.Rational(1, 2)])
        edge = (sp.diag(*f) - f * f.T) * A
        assert sp.sqrt(max((edge.T * edge).eigenvals())) == lipschitz.of_softmax(A)
        assert lipschitz.of_softmax(A + sp.ones(3, 2) * 7) == lipschitz.of_softmax(A)

    def test_one_row_does_not_move(self):
        assert lipschitz.of_softmax([[1, 2]]) == 0


class TestTable:
    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"n{s['n']}d{s['d']}R{s['R']:g}")
    def test_sampled_suprema_stay_below_the_sharp_and_the_sharp_below_the_published(self, sample):
        """The usual floor of alpha, and |b| = 1, as the file has them; its bounds are doubles."""
        size = sp.Rational(sample["R"])
        values = {"n": sample["n"], "R": size, "beta": sp.exp(-(size**2)), "b_norm": 1}
        f, M = row("f, x-move", **values), row("c = f - b, x-move", **values)
        assert sample["emp_sup_lip_f"] <= float(f.sharp) == sample["tight_bound_f"]
        assert float(f.published) == pytest.approx(sample["paper_style_chain_f"], rel=1e-12)
        assert float(M.published) == pytest.approx(sample["M_paper_n15exp10R2"], rel=1e-12)
        assert f.sharp < f.published < M.published
        assert sample["emp_icl_ratio"] <= float(row("b~, x-move", **values).sharp)
        gradient = row("gradient, b in the simplex", **values)
        assert float(gradient.sharp) == pytest.approx(sample["kappa_bound_grad"], rel=1e-12)
        proven = row("gradient, b in the simplex, every n", **values)
        assert sample["emp_sup_lip_grad_norm"] <= float(gradient.sharp) <= float(proven.sharp)
        assert float(proven.sharp) == sample["rigorous_bound_grad"]
        residual, slope = row("rescaled residual, x-move", **values), row("rescaled gradient", **values)
        assert float(residual.sharp) == pytest.approx(sample["bound_c_resc"], rel=1e-12)
        assert float(slope.sharp) == pytest.approx(sample["bound_grad_resc"], rel=1e-12)
        assert sample["emp_sup_lip_c_resc"] <= float(residual.sharp)
        assert sample["emp_sup_lip_grad_resc"] <= float(slope.sharp)

    def test_sharp_is_below_published_wherever_both_are_known(self):
        for size in (sp.Rational(1, 2), 1, 3):
            for count in (2, 5, 100):
                for bound in lipschitz.table(n=count, R=size, beta=sp.exp(-(size**2)), b_norm=1):
                    if bound.published is not None:
                        assert bound.sharp.evalf(20) < bound.published.evalf(20), bound.name

    def test_only_M_was_read_and_recalled_chains_name_no_paper(self):
        for bound in lipschitz.table():
            if bound.published is None:
                assert "no constant" in bound.status
            elif "recalled, not verified" in bound.status:
                assert "arXiv" not in bound.source
            else:
                assert bound.published == n ** sp.Rational(3, 2) * sp.exp(10 * R**2)
                assert "arXiv:2304.13276" in bound.source

    def test_f_needs_neither_n_nor_beta_nor_an_exponential(self):
        # log M = 10 R^2 + (3/2) log n, against log(R/2).
        bound = row("c = f - b, x-move")
        assert bound.sharp == R / 2
        assert sp.expand_log(sp.log(bound.published), force=True) == 10 * R**2 + 3 * sp.log(n) / 2

    def test_rescaled_has_no_global_constant(self):
        assert row("rescaled gradient, any x").sharp == sp.oo
        # A = 1, b = 0: Hr = d^2/dx^2 exp(2 x)/2 = 2 exp(2 x), by hand, beats every constant.
        model = vector.model(n=1, d=1, loss="rescaled").at([[1]], [0])
        assert sp.simplify(model.hessian[0] - 2 * sp.exp(2 * model.x[0])) == 0

    def test_u_is_attained_in_the_limit(self):
        # a_1 = R, x -> R: du_1/dx = R exp(R x) increases to R exp(R^2).
        size = sp.Rational(3, 2)
        bound = row("u, x-move", R=size).sharp
        rates = [(size * sp.exp(size * (size - h)) / bound).evalf(20) for h in (0.1, 0.01, 0.001)]
        assert all(a < b < 1 for a, b in pairwise(rates))
        assert 1 - rates[-1] < 0.0016  # R h

    def test_published_step_is_valid_for_every_row_count(self):
        """The chain itself, from its pieces: |df| <= |du|/beta + |d(1/alpha)| |u| with |u| <= sqrt(n) exp(R^2)."""
        u, inverse, f = (row(f"{name}, x-move").published for name in ("u", "1/alpha", "f"))
        assert sp.simplify(f - u / beta - inverse * sp.sqrt(n) * sp.exp(R**2)) == 0

    def test_simplex_row_is_the_general_one_at_the_largest_target(self):
        every = row("gradient, every b and n").sharp
        assert every == (1 + sp.sqrt(2) * b_norm) / 2 * R**2
        # b - <f, b> is at most 1 on the simplex in the place of sqrt(2) |b|.
        assert row("gradient, b in the simplex, every n").sharp == every.subs(b_norm, 1 / sp.sqrt(2))

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"n": 0}, "`n` must be a positive"),
            ({"n": sp.Rational(5, 2)}, "`n` must be an integer; got 5/2"),
            ({"R": -1}, "`R` must be a positive number or symbol; got -1"),
            ({"beta": 0}, "`beta` must be a positive"),
            ({"b_norm": -1}, "`b_norm` must be a non-negative"),
            ({"R": sp.oo}, "`R` must be a positive"),
        ],
    )
    def test_refuses(self, values, message):
        with pytest.raises(ValueError, match=message):
            lipschitz.table(**values)


def measured(A, x, b, A2, y):
    """Every quantity of the table, by NumPy from its definition: its change over the change of x, or of A."""

    def parts(A, x):
        u = np.exp(A @ x)
        alpha, f = u.sum(), u / u.sum()
        c, r = f - b, u - alpha * b
        S, Q = np.diag(f) - np.outer(f, f), np.eye(len(b)) - np.outer(b, np.ones(len(b)))
        w = f * (f + c - f @ c)
        spread = A - f @ A
        return {
            "u": u,
            "alpha": alpha,
            "1/alpha": 1 / alpha,
            "f": f,
            "c = f - b": c,
            "gradient": A.T @ (S @ c),
            "Hessian": spread.T @ (w[:, None] * spread),
            "rescaled residual": r,
            "rescaled gradient": A.T @ (u * (Q.T @ r)),
        }

    def ratio(one, two, distance):
        return {name: np.linalg.norm(np.atleast_1d(one[name] - two[name]), 2) / distance for name in one}

    here = parts(A, x)
    return (
        ratio(here, parts(A, y), np.linalg.norm(x - y)),
        ratio(here, parts(A2, x), np.linalg.norm(A - A2, 2)),
        here,
    )


@pytest.mark.parametrize(("rows", "dim", "size"), [(2, 1, 1.0), (3, 2, 1.5), (5, 3, 0.7)])
def test_no_random_pair_beats_a_bound(rows, dim, size):
    """400 pairs with |A|, |x| <= R and b in the simplex; |b| <= 1 and alpha's exact floor n exp(-R^2/sqrt(n))."""
    draw = np.random.default_rng(7)
    floor = rows * math.exp(-(size**2) / math.sqrt(rows))
    table = lipschitz.table(n=rows, R=size, beta=floor, b_norm=1)
    bounds = {bound.name: float(bound.sharp) for bound in table}

    def matrix():
        A = draw.normal(size=(rows, dim))
        return A * size / np.linalg.norm(A, 2)

    def point():
        x = draw.normal(size=dim)
        return x * size * draw.uniform() ** (1 / dim) / np.linalg.norm(x)

    def least(name):
        """Names such as "gradient, b in the simplex, every n" are bounds of one quantity; the smallest must hold."""
        return min(v for k, v in bounds.items() if k.split(",")[0] == name and "A-move" not in k)

    for k in range(400):
        A, x = matrix(), point()
        near = 10.0 ** draw.uniform(-3, 0)
        A2, y = A + near * (matrix() - A), x + near * (point() - x)
        in_x, in_A, here = measured(A, x, draw.dirichlet(np.full(rows, 0.3)), A2, y)
        assert here["alpha"] >= floor * (1 - 1e-12)
        for name, value in in_x.items():
            assert value <= least(name) * (1 + 1e-9), (k, name)
        for name in ("u", "alpha", "1/alpha", "f", "c = f - b", "rescaled residual"):
            assert in_A[name] <= bounds[f"{name}, A-move"] * (1 + 1e-9), (k, name)
        assert in_A["gradient"] <= bounds["gradient, A-move, every b and n"] * (1 + 1e-9)


@pytest.mark.parametrize("target", [(1, 0, 0), (0, 1, 0), (0.2, 0.3, 0.5), (0, 0.5, 0.5)])
def test_three_rows_stay_inside_the_bounds_for_every_n(target):
    """On a grid of f with n = 3: the Hessian in the logits, by its scatter form in floats, against 1 and kappa."""
    b = np.array(target, dtype=float)
    low, high = (float(lipschitz.kappa(side=side)) for side in ("smallest", "largest"))
    for i in range(1, 20):
        for j in range(1, 20 - i):
            f = np.array([i, j, 20 - i - j]) / 20
            c = f - b
            spread = np.eye(3) - f
            values = np.linalg.eigvalsh(spread.T @ np.diag(f * (f + c - f @ c)) @ spread)
            assert low - 1e-12 <= values[0]  # rounding
            assert values[-1] <= high + 1e-12
