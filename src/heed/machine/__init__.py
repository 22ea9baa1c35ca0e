"""What computes: device, processor, threads, memory, seeds."""
