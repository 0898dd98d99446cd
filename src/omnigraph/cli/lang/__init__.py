"""Commands about query and schema files: format and lint."""
