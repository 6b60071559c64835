"""Learners at home in other tools. Each file needs the tool it is named after, and is imported
by its own name: `from recollect.integrations.sklearn import ReplayClassifier`.
"""
