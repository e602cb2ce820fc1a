"""Judge: real gradient descent on the real network, from the paper's definition; gradients by autodiff.

Nothing here knows the derivations (`symbolic`) or the solvers, so that agreement with them means something.
Reading order: `tasks` (data), `features` and `statistics` (what of the data reaches the loss), `networks`
(forward passes), `losses` and `descent` (the loop), `observables` (weights in the coordinates of theory),
`evaluation` (fresh sequences), `escape` (growth from zero weights); `softmax_regression` (its losses, by definition)
and `assumptions` (what its papers assume, watched along a run).
"""

from odesys.simulation import networks, tasks
from odesys.simulation.descent import DescentError, descend
from odesys.simulation.evaluation import evaluate_loss, in_context_test

__all__ = ["DescentError", "descend", "evaluate_loss", "in_context_test", "networks", "tasks"]
