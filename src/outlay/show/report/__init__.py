"""Reports: a bill or a plan as HTML, Markdown or CSV, all from the same parts."""
