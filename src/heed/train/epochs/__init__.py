"""The pairs that an epoch reads: resampled, back-translated, denoised."""
