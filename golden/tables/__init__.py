"""How the function tables are made and how well they fit; nothing here runs in the golden model."""
