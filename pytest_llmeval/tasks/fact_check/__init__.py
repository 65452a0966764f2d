"""Fact checks: the verdict, the evidence that is cited, and the explanation.

From a reply to metrics: `answer` reads the reply, `claim` the ground truth, `verdicts` knows the labels, `tally`
counts, `details` writes for people, and `evaluator` puts them together. Evidence is compared in `measures.evidence`.
"""

__all__ = ()
