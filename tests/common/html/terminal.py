"""Draws what a terminal shows: terminal.py PNG < PANE, with what `tmux capture-pane -e -p` prints. The pictures of the
report and of the dashboard in docs/images are made so."""

import html
import os
import re
import sys
import tempfile

from browser import Page
from PIL import Image

PLAIN = ["#15181c", "#e5534b", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#d0d7de"]
BRIGHT = ["#768390", "#ff938a", "#8ddb8c", "#eac55f", "#96d0ff", "#dcbdfb", "#76e3ea", "#ffffff"]
STEPS = (0, 95, 135, 175, 215, 255)
STYLE = "body{margin:0;background:#15181c;color:#d0d7de}pre{margin:8px;font:14px/17px 'DejaVu Sans Mono',monospace}"


def indexed(number):
    """The colour of a number of 8 bits."""
    if number < 16:
        return (PLAIN + BRIGHT)[number]
    if number >= 232:
        grey = 8 + (number - 232) * 10
        return f"rgb({grey},{grey},{grey})"
    number -= 16
    return "rgb({},{},{})".format(*(STEPS[number // by % 6] for by in (36, 6, 1)))


def changed(style, codes):
    """The style after a sequence of SGR."""
    codes = list(codes) or [0]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (38, 48):
            name, how = ("color" if code == 38 else "background"), codes.pop(0)
            colour = indexed(codes.pop(0)) if how == 5 else "rgb({},{},{})".format(*(codes.pop(0) for _ in range(3)))
            style = {**style, name: colour}
        elif code in (39, 49):
            style = {k: v for k, v in style.items() if k != ("color" if code == 39 else "background")}
        elif code in (1, 2, 3, 4, 7):
            name = {1: "font-weight:bold", 2: "opacity:.6", 3: "font-style:italic", 4: "text-decoration:underline", 7: "reverse"}
            style = {**style, code: name[code]}
        elif code in (22, 23, 24, 27):
            style = {k: v for k, v in style.items() if k not in ((1, 2) if code == 22 else (code - 20,))}
        elif 30 <= code % 60 <= 37 or 40 <= code % 60 <= 47:
            table = BRIGHT if code >= 90 else PLAIN
            style = {**style, "color" if code % 60 < 40 else "background": table[code % 10]}
    return style


def css(style):
    own = {"color": style.get("color", "#d0d7de"), "background": style.get("background", "#15181c")}
    if 7 in style:
        own = {"color": own["background"], "background": own["color"]}
    extra = [value for key, value in style.items() if key in (1, 2, 3, 4)]
    return ";".join([*(f"{name}:{value}" for name, value in own.items()), *extra])


style, parts = {}, []
for text in re.split(r"(\x1b\[[\d;]*m)", sys.stdin.read().rstrip("\n")):
    if code := re.fullmatch(r"\x1b\[([\d;]*)m", text):
        style = changed(style, (int(n or 0) for n in code[1].split(";")))
    elif text:
        parts.append(f'<span style="{css(style)}">{html.escape(text)}</span>')
with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "pane.html")
    with open(path, "w") as file:
        file.write(f'<meta charset="utf-8"><style>{STYLE}</style><pre style="display:inline-block">{"".join(parts)}</pre>')
    page = Page(path)
    box = page.ask("(({width, height}) => ({width: width + 16, height: height + 16}))"
                   "(document.querySelector('pre').getBoundingClientRect())")
    page.screenshot(sys.argv[1], x=0, y=0, **box)
    page.close()
# A terminal has few colours.
with Image.open(sys.argv[1]) as picture:
    picture.quantize(48).save(sys.argv[1], optimize=True)
