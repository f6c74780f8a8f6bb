"""The model in training: families, attention in either direction, objectives, loss, guard,
interventions.
"""
