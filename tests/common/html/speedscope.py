"""Opens folded stacks in speedscope and compares its table of functions with them: speedscope.py SPEEDSCOPE FOLDED,
with the directory of its npm package. Prints the number of functions, and the total weight."""

import base64
import collections
import json
import os
import re
import sys
import tempfile

from browser import Page

package, folded = sys.argv[1:3]
text = open(folded).read()

# Of each name: what it weighs with all inside it, once for each stack it is in, and by itself.
wanted = collections.defaultdict(lambda: [0, 0])
for line in text.splitlines():
    stack, weight = line.rsplit(" ", 1)
    frames = stack.split(";")
    for name in set(frames):
        wanted[name][0] += int(weight)
    wanted[frames[-1]][1] += int(weight)

ROWS = "[...document.querySelectorAll('table tr')].map(row => [...row.children].map(cell => cell.innerText.trim()))"
with tempfile.TemporaryDirectory() as work:
    # As its command `speedscope FILE` does it.
    script = os.path.join(work, "profile.js")
    with open(script, "w") as file:
        file.write(f'speedscope.loadFileFromBase64("folded.txt", {json.dumps(base64.b64encode(text.encode()).decode())})')
    page = Page(os.path.join(package, "dist/release/index.html"), fragment=f"localProfilePath={script}",
                height=30 * (len(wanted) + 20))
    try:
        page.wait("document.body.innerText.includes('Sandwich')")
        page.ask("[...document.querySelectorAll('div')].filter(e => e.innerText.endsWith('Sandwich')).at(-1).click()")
        page.wait(f"{ROWS}.length > {len(wanted)}")
        rows = page.ask(ROWS)
        errors, requests = page.errors, page.requests
    finally:
        page.close()
assert not errors, errors
assert all(url.startswith("file://") for url in requests), requests
header, *rows = rows
assert header == ["Total", "Self", "Symbol Name"], header
shown = {}
for total, own, name in rows:
    numbers = [re.fullmatch(r"([\d,]+) \(<?[\d.]+%\)", cell) for cell in (total, own)]
    assert all(numbers), (total, own, name)
    shown[name] = [int(number[1].replace(",", "")) for number in numbers]
assert shown == dict(wanted), [(name, shown.get(name), wanted.get(name)) for name in shown.keys() | wanted.keys()
                               if shown.get(name) != wanted.get(name)]
print(len(shown), sum(own for _, own in shown.values()))
