"""Access control: API keys, rate limits, and client addresses behind trusted proxies."""
