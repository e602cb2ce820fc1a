"""Pictures of flows, with everything drawn returned as data.

Reading order: `phase_lines` (one state); for two states `window` and `direction_field` (what lines follow),
then `closed_orbits`, `spacing`, `streamlines` and `separatrices` (lines that are integrated), `factoring`,
`curves`, `nullclines` and `masks` (zero sets), `portraits` and `drawing`.
"""
