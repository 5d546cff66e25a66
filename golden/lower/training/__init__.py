"""Steps of training as programs of the accelerator: forward, loss, backward and update are one graph."""
