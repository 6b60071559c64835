"""What trackers are told of runs: points along the way, kept until every tracker has them."""
