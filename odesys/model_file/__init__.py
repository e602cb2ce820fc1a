"""A model of the user's own, in a TOML file: the equations as text, numbers, a start, and claims to be proven.

    name = "two-layer network"
    source = "Saxe et al. 2014, arXiv:1312.6120"

    [parameters]                    # numbers, or exact ones as text: third = "1/3"
    s = 1
    [flow]                          # one of [flow], [map] and [loss]; the order of the states is that of the lines
    a = "b*(s - a*b)"
    b = "a*(s - a*b)"

    [assume]                        # optional: what is known of states and parameters, which are real anyhow
    positive = ["s"]                # or nonnegative
    [conserved]                     # optional: claims of conserved quantities, by any names
    C = "a^2 - b^2"
    [observables]                   # optional: what to evaluate along runs
    p = "a*b"
    [solution]                      # optional: a claimed x(t) for every state, in t and the starts a_0, b_0
    [start]                         # where runs begin
    a = 0.1
    b = 0.5
    [run]                           # end; points = 201, method, rtol; for maps steps; for losses rate and steps
    end = 10
    [box]                           # optional: where to look for fixed points and to draw
    a = [-2, 2]
    b = [-2, 2]

A loss has `expression` and `states`, and either `time_constant` (1 if not given), for the flow
time_constant dw/dt = -dL/dw, or `step`, for the map w -> w - step dL/dw. The name t is the time (of a map: the step
count) wherever no state or parameter is called t. Expressions are those of `symbolic.expressions.parse`; numbers are
exact, so that 0.1 is 1/10.

Reading order: `model` (what a file holds), `document` (TOML, sections and values), `reader` (from one to the other).
"""

from odesys.model_file.document import ModelFileError
from odesys.model_file.model import ModelFile, Run
from odesys.model_file.reader import read

__all__ = ["ModelFile", "ModelFileError", "Run", "read"]
