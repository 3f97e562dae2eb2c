"""What a judge can be asked: each file holds wording, schema, reader, vote and version of one task."""
