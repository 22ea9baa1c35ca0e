"""The page at `/`: static files without a build step, served from memory."""
