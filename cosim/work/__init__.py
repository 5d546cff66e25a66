"""What runs on a simulated core: random products, the digits network, the regression, random designs."""
