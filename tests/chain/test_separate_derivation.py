"""Separate attention, derived: against hand formulas, a brute-force expectation and independent numbers."""

from functools import cache
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from references import reference

import odesys
import symbolic
from odesys.lambdify import compile_expressions
from symbolic.linear_attention import merged, separate, task

lam, a, v, N, tau = separate.lam, separate.a, separate.v, task.N, task.tau
CODE4 = reference("linear_attention_merged")["fixed_point_losses"]["D4_N31_code"]
ALIGNED = reference("linear_attention_aligned")["aligned_scalar_ode"]
SIZES = [(2, 2, 1), (3, 2, 1), (2, 1, 2)]


@cache
def model(dim, heads, rank=1):
    return separate.model(dim=dim, heads=heads, rank=rank)


def hand_a(spectrum, d):
    return 1 + (1 + sum(spectrum) / spectrum[d]) / N


def hand_residual(model):
    """G = Lam^2 - S M Lam by matrices."""
    spectrum, M = sp.diag(*model.eigenvalues), sp.zeros(model.dim)
    for x, K, Q in zip(model.v, model.K, model.Q, strict=True):
        for r in range(model.rank):
            M += x * K[r, :].T * Q[r, :]
    S = spectrum**2 + spectrum * (spectrum + spectrum.trace() * sp.eye(model.dim)) / N
    return spectrum**2 - S * M * spectrum


def zero(expressions):
    return all(sp.expand(e) == 0 for e in expressions)


class TestDefinition:
    @pytest.mark.parametrize("size", SIZES)
    def test_literal_attention_is_the_matrix_form(self, size):
        # One token adds y x^T M x_q; the query's own token (label 0) adds nothing.
        here = model(*size)
        x, q = (sp.Matrix(sp.symbols(f"{name}_1:{here.dim + 1}")) for name in "xq")
        y = sp.Symbol("y")
        assert sp.expand(here.token_contribution(x, y, q) - (y * x.T * here.M * q)[0]) == 0
        assert here.token_contribution(q, sp.Integer(0), q) == 0

    def test_names_of_the_weights(self):
        names = [w.name for w in model(2, 2, 2).weights]
        assert names[:4] == ["v_1", "v_2", "k_1_1_1", "k_1_1_2"]
        assert names[-1] == "q_2_2_2"
        assert len(names) == 2 * (2 * 2 * 2 + 1)

    def test_loss_is_the_merged_loss_of_the_same_matrices(self):
        here, other = model(2, 2, 2), merged.model(dim=2, heads=2)
        same = dict(zip(other.v, here.v, strict=True))
        for U, K, Q in zip(other.U, here.K, here.Q, strict=True):
            same |= dict(zip(U, K.T * Q, strict=True))
        assert sp.expand(other.loss.xreplace(same) - here.loss) == 0

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ({"dim": 0, "heads": 1}, "`dim` must be a positive integer; got 0"),
            ({"dim": 2, "heads": 0}, "`heads` must be a positive integer; got 0"),
            ({"dim": 2, "heads": 1.0}, "`heads` must be a positive integer; got 1.0"),
            ({"dim": 2, "heads": 1, "rank": 0}, "`rank` must be a positive integer; got 0"),
            ({"dim": 2, "heads": 1, "rank": 3}, "`rank` must be at most `dim` = 2; got 3"),
        ],
    )
    def test_refuses_sizes(self, sizes, message):
        with pytest.raises(ValueError, match=message):
            separate.model(**sizes)


class TestFlow:
    def test_rank_one_formulas_of_the_paper(self):
        # tau dv_i = k_i^T G q_i, tau dk_i = v_i G q_i, tau dq_i = v_i G^T k_i
        here = model(2, 2)
        rates, G = dict(zip(here.flow.state, here.flow.rhs, strict=True)), hand_residual(here)
        for x, K, Q in zip(here.v, here.K, here.Q, strict=True):
            k, q = K.T, Q.T
            assert sp.expand(tau * rates[x] - (k.T * G * q)[0]) == 0
            assert zero(tau * rates[w] - e for w, e in zip(k, x * G * q, strict=True))
            assert zero(tau * rates[w] - e for w, e in zip(q, x * G.T * k, strict=True))

    def test_any_rank(self):
        # tau dv_i = tr(K_i G Q_i^T), tau dK_i = v_i Q_i G^T, tau dQ_i = v_i K_i G
        here = model(2, 2, 2)
        rates, G = dict(zip(here.flow.state, here.flow.rhs, strict=True)), hand_residual(here)
        for x, K, Q in zip(here.v, here.K, here.Q, strict=True):
            assert sp.expand(tau * rates[x] - (K * G * Q.T).trace()) == 0
            assert zero(tau * rates[w] - e for w, e in zip(K, x * Q * G.T, strict=True))
            assert zero(tau * rates[w] - e for w, e in zip(Q, x * K * G, strict=True))

    @pytest.mark.parametrize("size", [(2, 2, 2), (3, 2, 1)])
    def test_the_chain_rule_through_M_is_the_gradient_of_the_loss(self, size):
        here = model(*size)
        plain = symbolic.gradient_flow(here.loss, here.weights, time_constant=2 * tau)
        assert plain.parameters == here.flow.parameters
        assert zero(f - g for f, g in zip(plain.rhs, here.flow.rhs, strict=True))

    def test_brute_force_expectation_of_the_literal_network(self):
        """D = H = R = N = 2: Gauss-Hermite nodes make the expectation of the polynomial loss an exact finite sum, of
        attention with literal weight matrices, differentiated by JAX."""
        here, spectrum = model(2, 2, 2), np.array([0.7, 0.4])
        three, two = np.polynomial.hermite_e.hermegauss(3), np.polynomial.hermite_e.hermegauss(2)
        rules = [three] * 4 + [two] * 4  # context of degree 4, query and task of degree 2, in each coordinate
        nodes = np.array(list(product(*(rule[0] for rule in rules))))
        mass = np.array([np.prod(m) for m in product(*(rule[1] / np.sqrt(2 * np.pi) for rule in rules))])
        context = nodes[:, :4].reshape(-1, 2, 2) * np.sqrt(spectrum)
        query, task_vector = nodes[:, 4:6] * np.sqrt(spectrum), nodes[:, 6:]
        labels = np.einsum("pnd,pd->pn", context, task_vector)
        ends = np.concatenate([query, np.zeros((len(nodes), 1))], axis=1)[:, None]
        tokens = np.concatenate([np.concatenate([context, labels[..., None]], axis=2), ends], axis=1)

        def loss(w):
            total = 0.0
            for i in range(2):
                value = jnp.zeros((3, 3)).at[2, 2].set(w[i])
                key, query_weights = (
                    jnp.pad(w[start + 4 * i : start + 4 * i + 4].reshape(2, 2), ((0, 0), (0, 1)))
                    for start in (2, 10)
                )
                update = jnp.einsum(
                    "ab,pnb,pnc,rc,rd,pd->pa", value, tokens, tokens, key, query_weights, ends[:, 0]
                )
                total = total + update[:, 2] / 2
            return jnp.sum(mass * (jnp.sum(query * task_vector, axis=1) - total) ** 2)

        numbers = {"N": 2, "lambda_1": 0.7, "lambda_2": 0.4, "tau": 1.5}
        rates = compile_expressions(here.flow.rhs, (*here.weights, *here.parameters))
        losses = compile_expressions((here.loss,), (*here.weights, N, *here.eigenvalues))
        draw = np.random.default_rng(3)
        with jax.enable_x64(True):
            value_and_gradient = jax.jit(jax.value_and_grad(loss))
            for _ in range(3):
                w = draw.integers(-9, 9, 18) / 7
                got = np.array(rates(*w, *(numbers[p.name] for p in here.parameters)))
                # rounding of sums over 1296 nodes
                height, gradient = value_and_gradient(w)
                np.testing.assert_allclose(got, -np.array(gradient) / 2 / 1.5, rtol=1e-11, atol=1e-11)
                np.testing.assert_allclose(losses(*w, 2, 0.7, 0.4)[0], height, rtol=1e-12)


class TestConserved:
    def test_rank_one_scalars(self):
        # v_i^2 - |k_i|^2 and |k_i|^2 - |q_i|^2
        here = model(2, 2)
        expected = set()
        for x, K, Q in zip(here.v, here.K, here.Q, strict=True):
            k, q = (sum(e**2 for e in part) for part in (K, Q))
            expected |= {sp.expand(x**2 - k), sp.expand(k - q)}
        assert {sp.expand(integral.expression) for integral in here.conserved} == expected

    def test_matrix_of_rank_two(self):
        here = model(2, 1, 2)
        (x,), (K,), (Q,) = here.v, here.K, here.Q

        def dot(A, r, s):
            return sum(A[r, d] * A[s, d] for d in range(2))

        expected = {x**2 - dot(K, 0, 0) - dot(K, 1, 1)}
        expected |= {dot(K, r, s) - dot(Q, r, s) for r, s in ((0, 0), (0, 1), (1, 1))}
        found = [integral.expression for integral in here.conserved]
        assert {sp.expand(e) for e in found} == {sp.expand(e) for e in expected}

    def test_one_row_alone_is_not_balanced_with_the_value(self):
        here = model(2, 1, 2)
        x, row = here.v[0], here.K[0][0, :]
        numbers = {p: sp.Rational(1, 2 + i) for i, p in enumerate(here.parameters)}
        with pytest.raises(symbolic.NotConservedError):
            symbolic.conservation.verify(
                symbolic.specialise(here.flow, numbers), x**2 - sum(e**2 for e in row)
            )


class TestReductions:
    def test_aligned_pairs_of_rank_two(self):
        # tau dkap_ir = v_i kap_ir g_ir, tau dv_i = sum_r kap_ir^2 g_ir, g = lam^2 - lam^3 a v_i kap_ir^2
        here = model(4, 2, 2)
        field = here.reductions["aligned"].field
        rates, spectrum = dict(zip(field.state, field.rhs, strict=True)), here.eigenvalues
        assert len(field.state) == 6
        for i, x in enumerate(here.v):
            sizes = [sp.Symbol(f"kappa_{i + 1}_{r + 1}") for r in range(2)]
            g = [
                spectrum[d] ** 2 - spectrum[d] ** 3 * hand_a(spectrum, d) * x * s**2
                for d, s in zip((2 * i, 2 * i + 1), sizes, strict=True)
            ]
            assert sp.expand(tau * rates[x] - sum(s**2 * e for s, e in zip(sizes, g, strict=True))) == 0
            assert zero(tau * rates[s] - x * s * e for s, e in zip(sizes, g, strict=True))
            assert symbolic.conservation.verify(field, x**2 - sum(s**2 for s in sizes))

    @pytest.mark.parametrize(("dim", "heads"), [(1, 1), (2, 2), (3, 3), (2, 3), (3, 2)])
    def test_every_head_obeys_the_scalar_equation(self, dim, heads):
        # tau v' = lam_d^2 v^2 - lam_d^3 a_d v^5 for min(D, H) heads at once; spare heads stay zero.
        here = model(dim, heads)
        field, spectrum = here.reductions["balanced"].field, here.eigenvalues
        assert field.state == here.v[: min(dim, heads)]
        (rate,) = here.reductions["scalar"].field.rhs
        for d, (x, f) in enumerate(zip(field.state, field.rhs, strict=True)):
            size = hand_a(spectrum, d)
            assert sp.expand(tau * f - spectrum[d] ** 2 * x**2 + spectrum[d] ** 3 * size * x**5) == 0
            assert sp.expand(f - rate.xreplace({v: x, lam: spectrum[d], a: size})) == 0

    def test_scalar_equation_of_the_paper(self):
        (rate,) = model(2, 2).reductions["scalar"].field.rhs
        assert sp.expand(tau * rate - lam**2 * v**2 + lam**3 * a * v**5) == 0

    def test_the_proof_for_every_dimension_notices_a_wrong_equation(self):
        wrong = (lam**2 * v**2 - lam**3 * a * v**4) / tau
        assert any(sp.expand(gap) != 0 for gap in separate._gaps_for_every_dimension(wrong))

    def test_losses_of_the_reductions(self):
        # L = tr - sum_d (2 lam_d^2 v_d^3 - lam_d^3 a_d v_d^6)
        here = model(3, 2)
        spectrum = here.eigenvalues
        expected = sum(spectrum)
        for d, x in enumerate(here.v):
            expected -= 2 * spectrum[d] ** 2 * x**3 - spectrum[d] ** 3 * hand_a(spectrum, d) * x**6
        assert sp.expand(here.reductions["balanced"].observables["loss"] - expected) == 0

    def test_two_heads_on_one_mode_share_its_target(self):
        # Invariant, but tau v_1' = lam^2 v_1^2 - lam^3 a v_1^2 (v_1^3 + v_2^3): not the scalar equation.
        here = model(2, 2)
        x, y = here.v
        field = symbolic.restrict(here.flow, here.balanced([1, 1]), state=(x, y))
        value, size = here.eigenvalues[0], hand_a(here.eigenvalues, 0)
        expected = value**2 * x**2 - value**3 * size * x**2 * (x**3 + y**3)
        assert sp.expand(tau * field.rhs[0] - expected) == 0
        (alone,) = here.reductions["scalar"].field.rhs
        assert sp.expand(field.rhs[0] - alone.xreplace({v: x, lam: value, a: size})) != 0

    def test_a_row_between_two_modes_is_not_invariant(self):
        here = model(2, 1)
        x = here.v[0]
        embedding = dict.fromkeys((*here.K[0], *here.Q[0]), x)
        with pytest.raises(symbolic.NotInvariantError, match="leaves the manifold"):
            symbolic.restrict(here.flow, embedding, state=(x,))

    @pytest.mark.parametrize(
        ("placement", "message"),
        [
            ([(1,), (2,), (1,)], "must fit 2 heads of 1 rows"),
            ([(1, 2)], "must fit 2 heads"),
            ([(3,)], "numbered 1 ... 2"),
        ],
    )
    def test_refuses_placements(self, placement, message):
        with pytest.raises(ValueError, match=message):
            model(2, 2).aligned(placement)

    def test_balanced_equilibrium(self):
        # D = 4, R = 2: v = (p_1 + p_2)^(1/3), (p_3 + p_4)^(1/3); the file rounds to 16 digits.
        here = model(4, 2, 2)
        numbers = {**dict(zip(here.eigenvalues, map(sp.Rational, CODE4["lambda"]), strict=True)), N: 31}
        values = {s.name: float(e.subs(numbers)) for s, e in here.equilibrium.items()}
        expected = reference("linear_attention_escape")["balanced_equilibrium_v"]
        np.testing.assert_allclose([values["v_1"], values["v_2"]], expected, rtol=1e-14)
        # The learned eigenvalue of each mode is its target p_d.
        p = [float(x) for x in CODE4["M_eigenvalue_p_star"]]
        got = [values[f"v_{i}"] * values[f"kappa_{i}_{r}"] ** 2 for i in (1, 2) for r in (1, 2)]
        np.testing.assert_allclose(got, p, rtol=1e-14)


class TestClosedForm:
    @pytest.fixture
    def law(self):
        return model(2, 2).closed_forms["scalar"]

    def numbers(self, case):
        return {
            lam: sp.Rational(case["lambda_d"]),
            a: sp.Rational(case["a_d"]),
            tau: sp.Rational(case["tau"]),
        }

    @pytest.mark.parametrize("name", sorted(ALIGNED))
    def test_time_at_which_each_value_is_reached(self, law, name):
        """t = F(v) - F(v_0): the file's v has 16 digits, which t resolves to 1e-12 while v moves."""
        case = ALIGNED[name]
        F = law.primitive.subs(self.numbers(case))
        begin = F.subs(v, sp.Rational(case["v0"])).evalf(40)
        star = sp.Float(case["v_star"], 20)
        assert abs(model(2, 2).v_star.subs(self.numbers(case)).evalf(30) / star - 1) < sp.Float("1e-18")
        for t, value in list(zip(case["t"], case["v_closed_form"], strict=True))[:6]:
            assert abs((F.subs(v, sp.Float(value, 40)).evalf(40) - begin) / sp.Float(t, 40) - 1) < 1e-12

    @pytest.mark.parametrize("name", sorted(ALIGNED))
    def test_half_time(self, law, name):
        case = ALIGNED[name]
        numbers = self.numbers(case) | {law.initial[v]: sp.Rational(case["v0"])}
        expected = sp.Float(case["t_half_loss_drop(u^3=1-1/sqrt2)"], 22)
        # a_d of the file has 20 digits
        assert abs(model(2, 2).half_time.subs(numbers).evalf(30) / expected - 1) < sp.Float("1e-17")

    def test_relaxation_rate(self):
        # -3 lam^2 v*/tau
        here = model(2, 2)
        assert sp.powsimp(here.relaxation_rate + 3 * lam**2 * here.v_star / tau) == 0

    @pytest.mark.parametrize("u", ["1/2", "2", "-1"])
    def test_the_law_is_real_on_every_basin(self, law, u):
        value = law.primitive.subs({lam: sp.Rational(2, 5), a: 1, tau: 1})
        value = value.subs(v, sp.Rational(u) * sp.Rational(5, 2) ** sp.Rational(1, 3)).evalf(30)
        assert value.is_real

    @pytest.mark.parametrize("size", [1e-3, 1e-12])
    def test_small_starts_never_saturate(self, law, size):
        # Before the take-off v = v_0/(1 - t/t*), t* = tau/(lam^2 v_0), up to (v/v*)^3; after it v = v*.
        end = 1 / (0.16 * size)
        times = np.concatenate([end * np.array([0.0, 0.5, 0.9]), end + np.linspace(1e2, 1e3, 20)])
        run = odesys.evaluate(law, {"v": size}, times, {"lambda": 0.4, "a": 69 / 62, "tau": 1.0})
        got, star = run["v"].values, (0.4 * 69 / 62) ** (-1 / 3)
        assert np.all(np.isfinite(got))
        np.testing.assert_allclose(got[:3], size * np.array([1.0, 2.0, 10.0]), rtol=1e-5)  # (10 v_0/v*)^3
        np.testing.assert_allclose(got[3:], star, rtol=1e-12)

    def test_a_start_of_the_wrong_sign_decays(self, law):
        # v_0 < 0 is the other basin: v = v_0/(1 - lam^2 v_0 t), up to (v_0/v*)^3 = 5e-7, towards 0 and never past it.
        run = odesys.evaluate(law, {"v": -0.01}, [0.0, 1e3, 1e9], {"lambda": 0.4, "a": 69 / 62, "tau": 1.0})
        expected = -0.01 / (1 + 0.16 * 0.01 * np.array([0.0, 1e3, 1e9]))
        np.testing.assert_allclose(run["v"], expected, rtol=1e-6)


class TestFixedPoints:
    def test_all_sixteen_losses(self):
        # L(M_S) = tr - sum lam_d/a_d for every S, D = 4, N = 31, (4, 3, 2, 1)/10, 20 digits; some points built whole.
        here = model(4, 2, 2)
        numbers = {**dict(zip(here.eigenvalues, map(sp.Rational, CODE4["lambda"]), strict=True)), N: 31}
        losses = reference("linear_attention_fixed_points")["fixed_point_losses"]["D4_N31_code"][
            "loss_by_subset(1-based)"
        ]
        for modes in ((), (3,), (2, 4)):
            got = here.point(modes).loss.subs(numbers)
            assert abs(got - sp.Float(losses[",".join(map(str, modes)) or "empty"], 20)) < sp.Float("1e-18")
        total = sum(here.eigenvalues)
        for modes in (m for n in range(5) for m in combinations((1, 2, 3, 4), n)):
            drops = sum(here.eigenvalues[d - 1] / here.a[d - 1] for d in modes)
            expected = sp.Float(losses[",".join(map(str, modes)) or "empty"], 20)
            assert abs((total - drops).subs(numbers) - expected) < sp.Float("1e-18")

    @pytest.mark.parametrize("size", SIZES)
    def test_structured_weights_fulfil_the_conditions(self, size):
        here = model(*size)
        for count in range(min(here.dim, here.heads * here.rank) + 1):
            for modes in combinations(range(1, here.dim + 1), count):
                point = here.point(modes)
                active = [i for i, x in enumerate(here.v, 1) if point.weights[x] != 0]
                assert len(active) == -(-count // here.rank)  # heads are filled in order
                gaps = [e.xreplace(point.weights) for e in here.conditions(modes, active)]
                assert all(sp.simplify(gap) == 0 for gap in gaps)

    def test_c3_denies_a_fixed_point_that_c3_prime_keeps(self):
        # Head 1 on e_1; head 2 with v = 0, k = e_2, q = e_3: neither lies in the span of S = {1}, yet nothing moves.
        here = model(3, 2)
        weights = dict(here.point([1]).weights)
        weights |= {here.v[1]: 0, here.K[1][0, 1]: 1, here.Q[1][0, 2]: 1}
        assert all(sp.simplify(f.xreplace(weights)) == 0 for f in here.flow.rhs)
        assert all(sp.simplify(e.xreplace(weights)) == 0 for e in here.conditions([1], [1]))
        outside = [weights[part[0, d]] for part in (here.K[1], here.Q[1]) for d in (1, 2)]
        assert outside == [1, 0, 0, 1]

    @pytest.mark.parametrize(
        ("entry", "value"), [("k_2_1_2", 1), ("v_2", sp.Rational(1, 3))], ids=["aligned key", "value"]
    )
    def test_conditions_notice_what_moves(self, entry, value):
        # q = e_2 joined by k = e_2 pulls v up; a value weight pulls its key.
        here = model(3, 2)
        weights = dict(here.point([1]).weights) | {here.Q[1][0, 1]: 1, sp.Symbol(entry): value}
        active = [1] if entry != "v_2" else [1, 2]
        assert any(sp.simplify(e.xreplace(weights)) != 0 for e in here.conditions([1], active))
        assert any(sp.simplify(f.xreplace(weights)) != 0 for f in here.flow.rhs)

    def test_predictor_is_principal_component_regression(self):
        # M_m = sum_{d<=m} e_d e_d^T/(lam_d a_d); for N to infinity M_m Lam is the projection on m components.
        here = model(3, 1)
        spectrum = here.eigenvalues
        for count in range(4):
            M = here.predictor(count)
            expected = [1 / (spectrum[d] * hand_a(spectrum, d)) if d < count else 0 for d in range(3)]
            assert all(sp.cancel(m - e) == 0 for m, e in zip(M.diagonal(), expected, strict=True))
            projection = (M * sp.diag(*spectrum)).applyfunc(lambda e: sp.limit(e, N, sp.oo))
            assert projection == sp.diag(*[1 if d < count else 0 for d in range(3)])

    def test_refusals(self):
        here = model(3, 2)
        with pytest.raises(ValueError, match="2 heads of rank 1 learn at most 2 modes; got 3"):
            here.point([1, 2, 3])
        for bad in ([0], [4], [1, 1], [1.5]):
            with pytest.raises(ValueError, match="`modes` must be distinct integers from 1 to 3"):
                here.point(bad)
        with pytest.raises(ValueError, match="`active` must be distinct integers from 1 to 2"):
            here.conditions([1], [3])
        with pytest.raises(ValueError, match="`count` must be an integer from 0 to D = 3; got 4"):
            here.predictor(4)


def test_observables_do_not_change_with_the_basis_of_the_rows():
    here = model(2, 1, 2)
    angle = sp.Matrix([[sp.Rational(3, 5), sp.Rational(4, 5)], [sp.Rational(-4, 5), sp.Rational(3, 5)]])
    turned = dict(zip(here.K[0], angle * here.K[0], strict=True)) | dict(
        zip(here.Q[0], angle * here.Q[0], strict=True)
    )
    assert set(here.observables) == {
        "loss",
        *(f"{name}_{r}_{c}" for name in ("M", "KQ_1") for r in (1, 2) for c in (1, 2)),
    }
    assert zero(e.xreplace(turned) - e for e in here.observables.values())


def test_defaults_are_the_authors_numbers():
    # Fig. 3: eigenvalues (4, 3, 2, 1)/10, N = 31, P = 80000, init .01, rate .02, 10001 steps.
    numbers = model(4, 2, 2).defaults
    assert numbers.pop("eigenvalues") == pytest.approx((0.4, 0.3, 0.2, 0.1))
    assert numbers == {"context": 31, "sequences": 80000, "init": 0.01, "rate": 0.02, "steps": 10001}
