"""Many questions in one fixed order, counted part by part."""
