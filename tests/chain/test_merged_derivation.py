"""Merged linear attention, derived: against hand formulas, brute force and independent numbers."""

import math
import random
from itertools import product
from statistics import NormalDist

import pytest
import sympy as sp
from references import reference

import symbolic
from symbolic.linear_attention import merged, task
from symbolic.moments import GaussianVector, expectation

REFERENCE = reference("linear_attention_merged")
lam, N, tau = merged.lam, task.N, merged.tau


def hand_a(spectrum, d):
    return 1 + (1 + sum(spectrum) / spectrum[d]) / N


class TestMoments:
    def test_symbolic_dimension(self):
        # S e_d = lambda_d^2 (1 + (1 + tr/lambda_d)/N) e_d for every D and N.
        moments = task.eigenbasis_moments()
        index = moments.indices[0]
        value = sp.IndexedBase("lambda")[index]
        (total,) = moments.S.atoms(sp.Sum)
        assert total.limits[0][1:] == (1, task.D)
        assert sp.simplify(moments.eigenvalue() - value**2 * (1 + (1 + total / value) / N)) == 0
        assert moments.S.has(sp.KroneckerDelta)

    @pytest.mark.parametrize("dim", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
    def test_explicit_dimension_agrees(self, dim):
        general, explicit = (
            task.eigenbasis_moments().at(dim),
            task.explicit_moments(sp.diag(*task.eigenvalues(dim))),
        )
        for name in ("S", "cross", "features"):
            assert (getattr(general, name) - getattr(explicit, name)).expand().is_zero_matrix
        assert sp.expand(general.power - explicit.power) == 0

    def test_any_covariance_not_only_diagonal(self):
        # S = Lam^2 + Lam (Lam + tr I)/N, E[y z] = Lam^2 and, row-major, E[z z^T] = S kron Lam.
        covariance = sp.Matrix([[sp.Symbol("p"), sp.Symbol("q")], [sp.Symbol("q"), sp.Symbol("r")]])
        got = task.explicit_moments(covariance)
        expected = covariance**2 + covariance * (covariance + covariance.trace() * sp.eye(2)) / N
        assert (got.S - expected).expand().is_zero_matrix
        assert (got.cross - covariance**2).expand().is_zero_matrix
        assert (got.features - sp.kronecker_product(expected, covariance)).expand().is_zero_matrix

    @pytest.mark.parametrize("samples", [1, 2])
    def test_brute_force_over_every_sample(self, samples):
        # beta written out sample by sample: no index algebra, no symbolic N.
        dim = 2
        spectrum = task.eigenvalues(dim)
        x = [sp.symbols(f"x_{n}_1:{dim + 1}") for n in range(samples)]
        q, w = sp.symbols(f"q_1:{dim + 1}"), sp.symbols(f"w_1:{dim + 1}")
        tokens = GaussianVector(sum(x, ()) + q, sp.diag(*(spectrum * (samples + 1))))
        weights = GaussianVector(w, sp.eye(dim))
        beta = [
            sum(sum(wi * xi for wi, xi in zip(w, row, strict=True)) * row[a] for row in x) / samples
            for a in range(dim)
        ]
        z = [b * qi for b in beta for qi in q]
        y = sum(wi * qi for wi, qi in zip(w, q, strict=True))
        moments = task.eigenbasis_moments().at(dim)
        for i, j in product(range(dim**2), repeat=2):
            brute = expectation(z[i] * z[j], tokens, weights)
            assert sp.expand(brute - moments.features[i, j].subs(N, samples)) == 0
        for i, zi in enumerate(z):
            assert sp.expand(expectation(y * zi, tokens, weights) - moments.cross[i // dim, i % dim]) == 0

    @pytest.mark.parametrize("name", sorted(REFERENCE["monte_carlo"]))
    def test_monte_carlo(self, name):
        """Sampled moments of six kinds lie within a Bonferroni bound at level 1e-3 over all their entries."""
        scores = _scores(name, lambda moments: moments)
        assert max(scores) < _bonferroni(len(scores))

    def test_monte_carlo_catches_a_missing_trace(self):
        # S without its tr(Lambda)/N term, and the features that follow from it.
        def planted(moments):
            spectrum = task.eigenvalues(2)
            S = sp.diag(*(x**2 * (1 + 1 / N) for x in spectrum))
            return task.Moments(S, moments.cross, sp.kronecker_product(S, sp.diag(*spectrum)), moments.power)

        scores = _scores("D2_N31_code", planted)
        assert max(scores) > _bonferroni(len(scores))


def _bonferroni(count):
    return NormalDist().inv_cdf(1 - 1e-3 / (2 * count))


def _scores(name, change):
    """|sampled - theory| / standard error, for every entry of every moment of one case."""
    case = REFERENCE["monte_carlo"][name]
    dim = len(case["Lambda"])
    numbers = {x: case["Lambda"][d][d] for d, x in enumerate(task.eigenvalues(dim))} | {N: case["N"]}
    moments = change(task.eigenbasis_moments().at(dim))
    # The file lists z = x_q kron beta (beta fastest); here z_ab = beta_a x_qb is row-major.
    order = [a * dim + b for b in range(dim) for a in range(dim)]
    model = merged.model(dim=dim, heads=1)
    weights = dict(zip(model.U[0], _flat(case["test_matrix_R"]), strict=True)) | {model.v[0]: 1}
    theory = {
        "E[y z]": list(moments.cross.T),
        "E[zz^T]": list(moments.features.extract(order, order)),
        "E[Lhat^2]": list(moments.S),
        "E[y^2]": [moments.power],
        "loss(M=R)": [model.loss.subs(weights)],
    }
    scores = []
    for key, entries in theory.items():
        rows = zip(entries, _flat(case[key]["mc"]), _flat(case[key]["se"]), strict=True)
        scores += [abs(mc - float(sp.sympify(entry).subs(numbers))) / se for entry, mc, se in rows]
    return scores


def _flat(value):
    return [x for row in value for x in _flat(row)] if isinstance(value, list) else [value]


class TestLossAndFlow:
    @pytest.fixture
    def model(self):
        return merged.model(dim=2, heads=2)

    def test_prediction_from_the_literal_matrices(self, model):
        # One token adds y x^T M x_q; the query's own token (label 0) adds nothing.
        x, q = sp.Matrix(sp.symbols("x_1:3")), sp.Matrix(sp.symbols("q_1:3"))
        y = sp.Symbol("y")
        expected = (y * x.T * model.M * q)[0]
        assert sp.expand(model.token_contribution(x, y, q) - expected) == 0
        assert model.token_contribution(q, sp.Integer(0), q) == 0

    def test_loss_in_modes(self, model):
        # L = tr + sum_ab lam_a^2 a_a lam_b m_ab^2 - 2 sum_d lam_d^2 m_dd
        spectrum, M = model.eigenvalues, model.M
        expected = sum(spectrum) - 2 * sum(spectrum[d] ** 2 * M[d, d] for d in range(2))
        for a, b in product(range(2), repeat=2):
            expected += spectrum[a] ** 2 * hand_a(spectrum, a) * spectrum[b] * M[a, b] ** 2
        assert sp.expand(model.loss - expected) == 0

    def test_flow_is_v_G_and_the_trace_of_U_G(self, model):
        # tau dU_i = v_i G, tau dv_i = tr(U_i^T G), G = Lam^2 - S M Lam, by matrices.
        spectrum = sp.diag(*model.eigenvalues)
        S = spectrum**2 + spectrum * (spectrum + spectrum.trace() * sp.eye(2)) / N
        G = spectrum**2 - S * model.M * spectrum
        rates = dict(zip(model.flow.state, model.flow.rhs, strict=True))
        for v, U in zip(model.v, model.U, strict=True):
            assert sp.expand(tau * rates[v] - (U.T * G).trace()) == 0
            assert all(sp.expand(tau * rates[e] - v * g) == 0 for e, g in zip(U, G, strict=True))

    def test_conserved_matrix(self, model):
        (v1, v2), (U1, U2) = model.v, model.U
        found = {sp.expand(integral.expression) for integral in model.conserved}

        def inner(A, B):
            return sum(p * q for p, q in zip(A, B, strict=True))

        assert found == {
            sp.expand(inner(U1, U1) - v1**2),
            sp.expand(inner(U1, U2) - v1 * v2),
            sp.expand(inner(U2, U2) - v2**2),
        }

    def test_two_layer_network_on_the_cubic_features(self, model):
        assert sp.expand(model.loss - model.two_layer_loss) == 0

    @pytest.mark.parametrize("name", ["D2_N31_code", "D3_N31_code", "D4_N31_code", "D8_N31_code"])
    def test_optimum(self, name):
        case = REFERENCE["fixed_point_losses"][name]
        model = merged.model(dim=len(case["lambda"]), heads=1)
        # The file rounds to 20 digits; the eigenvalues themselves are rational: D..1 over their sum.
        dim = len(case["lambda"])
        spectrum = [sp.Rational(2 * (dim - d), dim * (dim + 1)) for d in range(dim)]
        numbers = dict(zip(model.eigenvalues, spectrum, strict=True)) | {N: case["N"]}
        assert abs(model.optimal_loss.subs(numbers) - sp.Float(case["optimum_loss"], 20)) < sp.Float("1e-18")
        for got, expected in zip(model.optimum.diagonal(), case["M_eigenvalue_p_star"], strict=True):
            assert abs(got.subs(numbers) - sp.Float(expected, 20)) < sp.Float("1e-17")


class TestFixedPoints:
    @pytest.mark.parametrize(("dim", "heads"), [(1, 1), (2, 1), (2, 3)])
    def test_both_sets_are_fixed_and_nothing_near_them_is(self, dim, heads):
        model = merged.model(dim=dim, heads=heads)
        zero, optimum = model.fixed_points
        draw = random.Random(5)
        numbers = {p: sp.Rational(draw.randint(1, 9), 7) for p in model.parameters}
        flow = [f.subs(numbers) for f in model.flow.rhs]
        free = {w: sp.Rational(draw.randint(-9, 9), 5) for w in model.weights}
        for fixed, solve_for in ((zero, _zero_unknowns(model)), (optimum, list(model.U[0]))):
            # Solve the set's equations exactly for some weights, the others being arbitrary rationals.
            point = {w: value for w, value in free.items() if w not in solve_for}
            equations = [e.subs(numbers).subs(point) for e in fixed.equations]
            (solution,) = sp.linsolve(equations, solve_for)
            point |= dict(zip(solve_for, solution, strict=True))
            assert all(f.subs(point) == 0 for f in flow)
            assert sp.expand(model.loss.subs(numbers).subs(point) - fixed.loss.subs(numbers)) == 0
            nudged = point | {model.v[0]: point[model.v[0]] + 1}
            assert any(f.subs(nudged) != 0 for f in flow)

    @pytest.mark.parametrize(("dim", "heads"), [(2, 1), (2, 2), (3, 3), (4, 4)])
    def test_dimension_is_the_nullity_of_the_hessian(self, dim, heads):
        # Independent numerical Hessians list [negative, zero, positive] at points of both sets.
        rows = [r for r in REFERENCE["hessian_inertia_merged"] if (r["D"], r["H"]) == (dim, heads)]
        zero, optimum = merged.model(dim=dim, heads=heads).fixed_points
        assert len(rows) == 4  # the origin, another point of its set, and two of the optimum's
        for row in rows:
            expected = optimum if "minimum" in row["point"] else zero
            assert row["inertia"][1] == expected.dimension


def _zero_unknowns(model):
    return [*model.v, *(U[0, 0] for U in model.U)]


class TestReductions:
    @pytest.fixture
    def model(self):
        return merged.model(dim=3, heads=2)

    def test_aligned(self, model):
        # tau du_d = s (lam_d^2 - lam_d^3 a_d s u_d), tau ds = sum_d u_d (same bracket).
        field = model.reductions["aligned"].field
        s, *u = field.state
        spectrum = model.eigenvalues
        bracket = [x**2 - x**3 * hand_a(spectrum, d) * s * u[d] for d, x in enumerate(spectrum)]
        expected = [sum(ud * g for ud, g in zip(u, bracket, strict=True)), *(s * g for g in bracket)]
        assert all(sp.simplify(tau * f - e) == 0 for f, e in zip(field.rhs, expected, strict=True))

    def test_aligned_keeps_its_balance(self, model):
        field = model.reductions["aligned"].field
        s, *u = field.state
        assert symbolic.conservation.verify(field, s**2 - sum(x**2 for x in u))

    def test_white_is_logistic(self, model):
        # d sigma/dt = (2c/tau) sigma (1 - a lam sigma), c = sqrt(D) lam^2
        field = model.reductions["white"].field
        (sigma,) = field.state
        expected = 2 * sp.sqrt(3) * lam**2 / tau * sigma * (1 - (1 + sp.Integer(4) / N) * lam * sigma)
        assert sp.simplify(field.rhs[0] - expected) == 0

    def test_white_exact_is_a_riccati_equation(self, model):
        # tau y' = 2 (c y - kap P y^2 + kap Q), kap = lam^3 a
        field = model.reductions["white exact"].field
        (y,) = field.state
        c, kap = sp.sqrt(3) * lam**2, lam**3 * (1 + sp.Integer(4) / N)
        expected = 2 * (c * y - kap * merged.P * y**2 + kap * merged.Q) / tau
        assert sp.simplify(field.rhs[0] - expected) == 0

    def test_white_loss(self, model):
        # L = D lam - 2 D lam^2 sigma + D a lam^3 sigma^2
        sigma = merged.sigma
        expected = 3 * lam - 6 * lam**2 * sigma + 3 * (1 + sp.Integer(4) / N) * lam**3 * sigma**2
        assert sp.expand(model.reductions["white"].observables["loss"] - expected) == 0

    def test_an_ansatz_that_is_not_invariant_is_refused(self, model):
        # All modes equal is invariant for a white covariance only.
        field = model.reductions["aligned"].field
        s, *u = field.state
        with pytest.raises(symbolic.NotInvariantError, match="leaves the manifold"):
            symbolic.restrict(field, dict.fromkeys(u, merged.u), state=(s, merged.u))


class TestClosedForms:
    @pytest.fixture
    def model(self):
        return merged.model(dim=4, heads=1)

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=pytest.mark.slow if "lam0.25" in name else [])
            for name in sorted(REFERENCE["white_time_course"])
        ],
    )
    def test_time_course_to_forty_digits(self, model, name):
        """The file rounds to 16 digits; the allowance is 1e-12 relative for values and times."""
        case = REFERENCE["white_time_course"][name]
        law = model.closed_forms["white"]
        (course,) = law.explicit.values()
        (start,) = law.initial.values()
        numbers = {
            lam: sp.Rational(case["lambda"]),
            N: case["N"],
            tau: 1,
            start: sp.Rational(case["w_init"]) ** 2 / sp.sqrt(case["D"]),
        }
        loss = model.reductions["white"].observables["loss"].subs(merged.sigma, course)
        for t, sigma, value in zip(case["t"], case["sigma"], case["loss"], strict=True):
            at = numbers | {law.time: sp.Float(t, 40)}
            assert abs(course.subs(at).evalf(40) / sp.Float(sigma, 40) - 1) < 1e-12
            assert abs(loss.subs(at).evalf(40) / sp.Float(value, 40) - 1) < 1e-12

    def test_half_time(self, model):
        case = REFERENCE["white_time_course"]["D4_lam1_N31_w=0.01"]
        w = sp.Rational(case["w_init"])
        numbers = {lam: sp.Rational(case["lambda"]), N: case["N"], tau: 1}
        start = next(iter(model.closed_forms["white"].initial.values()))
        got = model.half_time.subs(numbers).subs(start, w**2 / 2).evalf(30)
        assert abs(got / sp.Float("2.4384744380908064959", 30) - 1) < sp.Float("1e-18")
        # The paper's ln(1/w)/|Lam^2|, here ln(100)/2, keeps the leading logarithm only: 2.3026.
        leading = float(case["tau/||Lambda^2|| ln(1/w_init)"])
        assert leading == pytest.approx(math.log(100) / 2, rel=1e-12)
        assert got - leading > 0.1


@pytest.mark.parametrize("bad", [{"dim": 0, "heads": 1}, {"dim": 2, "heads": 0}, {"dim": 2.0, "heads": 1}])
def test_refuses_sizes(bad):
    with pytest.raises(ValueError, match="must be a positive integer"):
        merged.model(**bad)
