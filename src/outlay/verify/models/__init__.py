"""What is run: a model of ours as modules of torch, or the class that transformers has for it, cut over ranks.

`configs` needs no torch until it builds; all else loads it. `build` puts a layout's cuts around `llama`, `gpt` and
`other_layers`, whose kernels on a CPU keep what those of a GPU keep; `ranks` lets one process be any of many.
"""
