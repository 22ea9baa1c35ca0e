"""The work behind requests: models, jobs and their shared batches."""
