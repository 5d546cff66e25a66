"""Addresses of other sites on the pages: how they are written; ``python -m tests.test_links`` asks them to answer."""

import re
import sys
from collections import defaultdict
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from tests.test_docs import PAGES


def addresses(pages):
    """Address -> the pages that have it."""
    found = defaultdict(set)
    for path in pages:
        for address in re.findall(r"\bhttps?://[^\s)>\"'`]+", path.read_text()):
            found[address].add(path.name)
    return found


def spelled_wrong(found):
    """Addresses that are none of ``https``, end in punctuation, or are spelled in a second way."""
    seen = defaultdict(set)
    for address in found:
        seen[address.lower().removeprefix("https://www.").removeprefix("https://").rstrip("/")].add(address)
    twice = {address for each in seen.values() if len(each) > 1 for address in each}
    return sorted(address for address in found
                  if address in twice or urlsplit(address).scheme != "https" or "." not in urlsplit(address).netloc
                  or address[-1] in ".,;:")


def test_wrong_addresses_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](https://a.org/b), `https://A.org/b/`, http://c.org/ <https://d.org/e.> https://here/f\n"
                    "[g](https://g.org)")
    assert spelled_wrong(addresses([page])) == ["http://c.org/", "https://A.org/b/", "https://a.org/b",
                                                "https://d.org/e.", "https://here/f"]


def test_addresses_are_spelled_right():
    found = addresses(PAGES)
    assert len(found) > 5 and spelled_wrong(found) == []


def answer(address):
    """What is wrong with it, in one line; None if it answers."""
    try:
        with urlopen(Request(address, headers={"User-Agent": "Mozilla/5.0"}), timeout=30):
            return None
    except HTTPError as error:
        return None if error.code in (403, 429) else f"status {error.code}"    # there, but not for programs
    except OSError as error:
        return str(getattr(error, "reason", error))


if __name__ == "__main__":
    dead = [f"{address} ({', '.join(sorted(pages))}): {wrong}" for address, pages in sorted(addresses(PAGES).items())
            if (wrong := answer(address))]
    print(*dead or ["every address answers"], sep="\n")
    sys.exit(bool(dead))
