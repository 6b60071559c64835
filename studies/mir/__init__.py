"""The learner of MIR's authors beside ours."""
