"""Tables, pictures and the page that say what was measured."""
