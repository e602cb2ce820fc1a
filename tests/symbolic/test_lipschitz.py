"""Bounds of softmax regression: exact constants, attained where they say so, never beaten, and the published beside."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from references import reference

from symbolic import lipschitz
from symbolic.lipschitz import Cited, R, beta, n
from symbolic.softmax_regression import vector

REFERENCE = reference("softmax_regression")
SAMPLES = REFERENCE["lipschitz"]


def row(name, **values):
    return lipschitz.table(**values)[name]


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

    def test_refuses_what_is_no_matrix_of_numbers(self):
        with pytest.raises(ValueError, match="`A` must hold finite real entries; got nan"):
            lipschitz.of_softmax([[float("nan")], [1]])


class TestTable:
    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"n{s['n']}d{s['d']}R{s['R']:g}")
    def test_sampled_suprema_stay_below_the_best_and_the_best_below_the_published(self, sample):
        """The usual floor of alpha, and |b| = 1, as the file has them; its bounds are doubles."""
        size = sp.Rational(sample["R"])
        values = {"n": sample["n"], "R": size, "beta": sp.exp(-(size**2)), "b_norm": 1}
        f, M = row("f, x-move", **values), row("c, x-move", **values)
        assert sample["emp_sup_lip_f"] <= float(f.best) == sample["tight_bound_f"]
        assert float(f.published) == pytest.approx(sample["paper_style_chain_f"], rel=1e-12)
        assert float(M.published) == pytest.approx(sample["M_paper_n15exp10R2"], rel=1e-12)
        assert f.best < f.published < M.published
        assert sample["emp_icl_ratio"] <= float(row("b~, x-move", **values).best)
        gradient = row("gradient, x-move, b in the simplex", **values)
        assert float(gradient.best) == pytest.approx(sample["kappa_bound_grad"], rel=1e-12)
        proven = row("gradient, x-move, b in the simplex, every n", **values)
        assert sample["emp_sup_lip_grad_norm"] <= float(gradient.best) <= float(proven.best)
        # The file's R^2, and its bounds with sqrt(n) before every exponential, are valid too, and larger.
        assert float(proven.best) == pytest.approx(9 / 16 * sample["rigorous_bound_grad"], rel=1e-12)
        residual, slope = (
            row("rescaled residual, x-move", **values),
            row("rescaled gradient, x-move", **values),
        )
        assert sample["emp_sup_lip_c_resc"] <= float(residual.best) < sample["bound_c_resc"]
        assert sample["emp_sup_lip_grad_resc"] <= float(slope.best) < sample["bound_grad_resc"]

    def test_best_is_below_published_wherever_both_are_known(self):
        for size in (sp.Rational(1, 2), 1, 3):
            for count in (2, 5, 100):
                for bound in lipschitz.table(n=count, R=size, beta=sp.exp(-(size**2)), b_norm=1):
                    if bound.published is not None:
                        assert bound.best.evalf(20) < bound.published.evalf(20), bound.name

    def test_only_M_was_read_and_chains_name_no_paper(self):
        for bound in lipschitz.table():
            if bound.cited is Cited.ABSENT:
                assert bound.published is None
            elif bound.cited is Cited.CHAIN:
                assert "arXiv" not in bound.source
            else:
                assert bound.published == n ** sp.Rational(3, 2) * sp.exp(10 * R**2)
                assert "arXiv:2304.13276" in bound.source

    def test_f_needs_neither_n_nor_beta_nor_an_exponential(self):
        # log M = 10 R^2 + (3/2) log n, against log(R/2).
        bound = row("c, x-move")
        assert bound.best == R / 2
        assert sp.expand_log(sp.log(bound.published), force=True) == 10 * R**2 + 3 * sp.log(n) / 2

    def test_rescaled_has_no_global_constant(self):
        assert row("rescaled gradient, x-move, every x").best == sp.oo
        # A = 1, b = 0: Hr = d^2/dx^2 exp(2 x)/2 = 2 exp(2 x), by hand, beats every constant.
        model = vector.model(n=1, d=1, loss="rescaled").at([[1]], [0])
        assert sp.simplify(model.hessian[0] - 2 * sp.exp(2 * model.x[0])) == 0

    def test_u_is_attained_in_the_limit(self):
        # a_1 = R, x -> R: du_1/dx = R exp(R x) increases to R exp(R^2).
        size = sp.Rational(3, 2)
        bound = row("u, x-move", R=size).best
        rates = [(size * sp.exp(size * (size - h)) / bound).evalf(20) for h in (0.1, 0.01, 0.001)]
        assert all(a < b < 1 for a, b in pairwise(rates))
        assert 1 - rates[-1] < 0.0016  # R h

    def test_one_row_attains_alpha_and_the_rescaled_residual(self):
        # n = 1: alpha = u, so R exp(R^2); b = -1: r = 2 u.
        values = {"n": 1, "R": 2, "b_norm": 1}
        assert row("alpha, x-move", **values).best == 2 * sp.exp(4)
        assert row("rescaled residual, x-move", **values).best == 4 * sp.exp(4)

    @pytest.mark.parametrize("count", [2, 5, 40])
    def test_norms_of_u_stay_below_what_the_bounds_use(self, count):
        """|u| and |f|/alpha over |s| <= R^2: random s on spheres, all equal, and one alone; relative rounding 1e-12."""
        size = 1.3
        alpha, inverse = (
            float(row(f"{name}, x-move", n=count, R=size, beta=1e-300).best) / size
            for name in ("alpha", "1/alpha")
        )
        draw = np.random.default_rng(3)
        s = draw.normal(size=(4000, count)) * np.exp(draw.normal(size=(4000, count)))
        s = np.vstack([s, np.eye(count), -np.eye(count), np.ones((1, count)), -np.ones((1, count))])
        s *= (
            size**2
            * draw.uniform(0.5, 1, size=(len(s), 1)).round()
            / np.linalg.norm(s, axis=1, keepdims=True)
        )
        u = np.exp(s)
        norm, total = np.linalg.norm(u, axis=1), u.sum(axis=1)
        assert norm.max() <= alpha * (1 + 1e-12)
        assert (norm / total**2).max() <= inverse * (1 + 1e-12)

    def test_published_step_is_valid_for_every_row_count(self):
        """The chain itself, from its pieces: |df| <= |du|/beta + |d(1/alpha)| |u| with |u| <= sqrt(n) exp(R^2)."""
        u, inverse, f = (row(f"{name}, x-move").published for name in ("u", "1/alpha", "f"))
        assert sp.simplify(f - u / beta - inverse * sp.sqrt(n) * sp.exp(R**2)) == 0

    def test_every_row_has_a_name_of_its_own_and_says_what_moves(self):
        table = lipschitz.table()
        assert len({bound.name for bound in table}) == len(table) == 38
        assert {bound.moved for bound in table} == {"x", "A", "X", "A1", "A2"}
        assert table["f, x-move"].ratio == "|f(x) - f(y)| / |x - y|"
        assert table["rescaled b^, A-move"].ratio == "|b^ - b| / |A - A'|"
        assert table["B^, A1-move"].ratio == "|B^ - B|_F / (|A1 - A1'| |A2|)"
        gradient = table["matrix gradient, X-move, rows of B in the simplex"]
        assert gradient.ratio == "|grad L(X) - grad L(Y)|_F / |X - Y|_F"

    def test_a_matrix_has_the_constants_of_one_row(self):
        table = lipschitz.table()
        for bound in table:
            if bound.of_matrix:
                kin = (bound.quantity, "x" if bound.moved == "X" else "A", bound.target, bound.note)
                (vector_row,) = [b for b in table if (b.quantity, b.moved, b.target, b.note) == kin]
                assert bound.best == vector_row.best, bound.name

    def test_rows_of_one_quantity_do_not_contradict_each_other(self):
        """What is proven for every n is no smaller than what two rows attain."""
        table = lipschitz.table(n=2, R=3, beta=sp.exp(-9), b_norm=1)
        two, every = (table[f"gradient, x-move, b in the simplex{note}"].best for note in ("", ", every n"))
        assert two < every < table["gradient, x-move, every n"].best
        assert table["gradient, x-move, |b| <= 1"].best < table["gradient, x-move, every n"].best


class TestShow:
    def test_numbers_are_readable_though_exact(self):
        table = lipschitz.table(n=4, R=2, beta=0.3, b_norm=1)
        lines = str(table).splitlines()
        # 1/alpha by the given floor 0.3 or by exp(2)/4 = 1.847: R times the smaller, and 8 sqrt(4) exp(4)/0.09.
        (line,) = [line for line in lines if line.startswith("1/alpha, x-move")]
        assert line.split()[2:5] == ["9706", "(chain)", "3.695"]
        assert len(lines) == len(table) + 1
        assert max(map(len, lines)) < 175
        (line,) = [line for line in lines if line.startswith("c, x-move")]
        assert "1.883E+18 " in line  # 8 exp(40)
        assert str(table["f, x-move"]) == "|f(x) - f(y)| / |x - y| <= 1.000"
        assert table["1/alpha, x-move"].published == 16 * sp.exp(4) / sp.Rational(0.3) ** 2

    def test_floats_beside_letters_are_shown_as_floats(self):
        shown = str(lipschitz.table(beta=0.3))
        assert "22.22*R*n*exp(R**2) (chain)" in shown
        assert "2882303761517117" not in shown
        assert "CRootOf" not in shown
        assert "0.5714*R**3" in shown

    def test_numbers_too_large_for_floats(self):
        # log10 M = (10 * 100^2 + 1.5 log 2)/log 10 = 43429.90.
        assert "E+43429" in str(lipschitz.table(n=2, R=100, beta=1, b_norm=0))

    def test_notebooks_show_formulas(self):
        shown = lipschitz.table(n=2)._repr_html_()
        assert shown.count("<tr>") == 39
        assert r"$\frac{R}{2}$" in shown
        assert "|b| &lt;= 1" in shown

    def test_by_number_and_by_name(self):
        table = lipschitz.table()
        assert table[0] is table["u, x-move"]
        assert [bound.name for bound in table][-1] == "rescaled B^, A2-move"
        with pytest.raises(KeyError, match="no row 'g'; its rows are"):
            table["g"]


class TestRefusals:
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
            "c": c,
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

    def matrix():
        A = draw.normal(size=(rows, dim))
        return A * size / np.linalg.norm(A, 2)

    def point():
        x = draw.normal(size=dim)
        return x * size * draw.uniform() ** (1 / dim) / np.linalg.norm(x)

    least = {}
    for bound in table:
        key = (bound.quantity, bound.moved)
        least[key] = min(float(bound.best), least.get(key, math.inf))
    for k in range(400):
        A, x = matrix(), point()
        near = 10.0 ** draw.uniform(-3, 0)
        A2, y = A + near * (matrix() - A), x + near * (point() - x)
        in_x, in_A, here = measured(A, x, draw.dirichlet(np.full(rows, 0.3)), A2, y)
        assert here["alpha"] >= floor * (1 - 1e-12)
        for moved, ratios in (("x", in_x), ("A", in_A)):
            for name, value in ratios.items():
                if (name, moved) in least:
                    assert value <= least[name, moved] * (1 + 1e-9), (
                        k,
                        name,
                        moved,
                    )  # rounding of differences


def curvatures(f, b):
    """The eigenvalues of the Hessian in the logits, by its scatter form in floats."""
    c, spread = f - b, np.eye(len(f)) - f
    return np.linalg.eigvalsh(spread.T @ np.diag(f * (f + c - f @ c)) @ spread)


@pytest.mark.parametrize("target", [(1, 0, 0), (0, 1, 0), (0.2, 0.3, 0.5), (0, 0.5, 0.5)])
def test_three_rows_stay_inside_the_bounds_of_two(target):
    """On a grid of f with n = 3, against kappa, though it is no theorem; 1e-12 for rounding."""
    low, high = (float(lipschitz.kappa(side=side)) for side in ("smallest", "largest"))
    for i in range(1, 20):
        for j in range(1, 20 - i):
            values = curvatures(np.array([i, j, 20 - i - j]) / 20, np.array(target, dtype=float))
            assert low - 1e-12 <= values[0]
            assert values[-1] <= high + 1e-12


class TestNineSixteenths:
    def test_its_last_step(self):
        """(1 - t)(1 - 2 t)(1/2 + 2 t (1 - t)) < 9/16 on [0, 1/2]: no root of the difference there, at 0 it is 1/16."""
        t = sp.Symbol("t")
        gap = sp.Poly(sp.Rational(9, 16) - (1 - t) * (1 - 2 * t) * (sp.Rational(1, 2) + 2 * t * (1 - t)), t)
        assert gap.eval(0) == sp.Rational(1, 16)
        assert gap.count_roots(0, sp.Rational(1, 2)) == 0

    @pytest.mark.parametrize("count", [2, 3, 6, 20])
    def test_no_random_curvature_beats_it(self, count):
        draw = np.random.default_rng(5)
        for sharpness in (0.05, 0.3, 1.0):
            for f in draw.dirichlet(np.full(count, sharpness), size=60):
                for b in np.eye(count)[:6]:
                    assert np.abs(curvatures(f, b)).max() <= 9 / 16
