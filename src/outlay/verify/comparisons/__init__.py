"""Each count of one rank beside an engine's, on tensors without data: a file a kind, which needs no torch to be loaded.

Beside them stands what they measure with, which loads torch: `tracking` for `memory` (in the words of `kinds`),
`collectives` for `traffic`, `standing` for `segments`.
"""
