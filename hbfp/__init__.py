"""What all parts share and none of them owns; the parts are packages below."""

from .checkout import find_parts

find_parts()
