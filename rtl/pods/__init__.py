"""Many pods: the networks between pods and banks."""
