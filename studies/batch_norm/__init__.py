"""What BatchNorm does to replay."""
