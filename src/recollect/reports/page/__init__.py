"""The parts of the report's page, one file a part."""
