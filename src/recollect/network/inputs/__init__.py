"""From what people pass and memories keep to what the model takes."""
