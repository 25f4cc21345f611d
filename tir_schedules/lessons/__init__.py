"""Lessons: files that a learner edits, graded by executing them. README.md says how a lesson is written."""
