"""Benches: streams driven and watched, results judged by the golden model, corners counted."""
