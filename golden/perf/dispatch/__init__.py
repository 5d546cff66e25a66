"""The request dispatcher in time: its cycle-true twin, a simulator of many requests, and a bound of the latency."""
