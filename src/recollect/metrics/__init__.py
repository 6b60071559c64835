"""Numbers from counts: accuracy, forgetting, margins."""
