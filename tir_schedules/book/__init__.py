"""The book: a static site of chapters, one for each rung, made from the code, its executions and recorded
results. README.md says how its pages are written."""
