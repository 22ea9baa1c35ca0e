"""Observing a run: probes, alarms, forecasts."""
