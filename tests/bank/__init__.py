"""Answers as people write them, for every question of every exercise: right ones that must score full marks, and wrong ones.

One module per exercise. RIGHT: question -> at least three different right answers. WRONG: question -> (answer, the kind that
the verdict must name, the points that it still earns). A function stands for the learner's function, anything else for a value.
"""
