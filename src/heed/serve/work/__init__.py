"""The work behind the requests: models, jobs and the batches they share."""
