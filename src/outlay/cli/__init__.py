"""The command line: `outlay count`, `outlay bubble`, and the rest. The only place that prints."""
