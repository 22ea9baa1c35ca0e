"""The hardware of a run: device, processor, threads, memory; and seeds."""
