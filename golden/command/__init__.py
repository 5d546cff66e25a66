"""What commands share: options, progress, workers."""
