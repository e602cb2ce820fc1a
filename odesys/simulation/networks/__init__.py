"""Networks, written from the paper's definitions: weights, forward pass, linear form in the features.

`normalization` is the one choice that paper and code make differently (`odesys.clock` holds the factors):

    "sum"     (default) no 1/N, as in the authors' code. Their learning rates and initial sizes are meant for
              it: rate 1e-3, init 1e-6 and 6001 steps are Figure 1.
    "mean"    the paper's 1/N, with the number n of context pairs of each sequence where that varies.
    "tokens"  1/(n+1), which counts the query, as in the authors' code where the context length varies.

Reading order: `network` (what `descend` asks of one), `merged`, `separate`, `restricted` (either of them with the
blocks that theory sets to zero held there), `cubic` (the equivalent two-layer network), `softmax`.
"""

from odesys.simulation.networks.cubic import CubicFeatureNetwork, CubicWeights
from odesys.simulation.networks.merged import MergedAttention, MergedWeights
from odesys.simulation.networks.network import Network
from odesys.simulation.networks.restricted import RestrictedAttention
from odesys.simulation.networks.separate import InitRule, SeparateAttention, SeparateWeights
from odesys.simulation.networks.softmax import SoftmaxAttention

__all__ = [
    "Network",
    "MergedAttention",
    "MergedWeights",
    "SeparateAttention",
    "SeparateWeights",
    "InitRule",
    "RestrictedAttention",
    "CubicFeatureNetwork",
    "CubicWeights",
    "SoftmaxAttention",
]
