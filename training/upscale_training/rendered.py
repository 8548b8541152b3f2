"""Pages drawn by code: text, interfaces, charts, line art and pixel art. Endless, free, and never anyone's.

Drawn with the machine's own fonts where it has any (they are not copied anywhere), else with Pillow's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FONT_FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
SOUNDS = """ka lo mi ter un ver si den ra po qui ba ze nor fi gus ell tha jo we xi my out per ing ist and er on tion
St Mo Gr Wh A I Be 20 7 3.5 19 48 100 % @ & (x) fg jy pq ffi"""
SYLLABLES = tuple(SOUNDS.split())
Draw = np.random.Generator


@lru_cache(maxsize=1)
def font_files() -> tuple[str, ...]:
    found = (path for folder in FONT_FOLDERS for path in folder.rglob("*.ttf"))
    return tuple(sorted(str(path) for path in found if "Math" not in path.name))


@lru_cache(maxsize=512)
def load_font(file: str, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.truetype(file, size) if file else ImageFont.load_default(size)


def some_font(draw: Draw, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    files = font_files()
    return load_font(str(draw.choice(files)) if files else "", size)


def some_colour(draw: Draw, low: int = 0, high: int = 256) -> tuple[int, int, int]:
    """Grey half of the time, as ink and paper mostly are."""
    if draw.random() < 0.5:
        return (int(draw.integers(low, high)),) * 3
    return tuple(int(value) for value in draw.integers(low, high, 3))


def ink_and_paper(draw: Draw) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    dark, light = some_colour(draw, 0, 110), some_colour(draw, 170, 256)
    if draw.random() < 0.3:
        dark, light = (0, 0, 0), (255, 255, 255)
    return (dark, light) if draw.random() < 0.75 else (light, dark)


def words(draw: Draw, count: int) -> str:
    return " ".join("".join(draw.choice(SYLLABLES, draw.integers(1, 4))) for _ in range(count))


def text_page(draw: Draw, side: int) -> Image.Image:
    """Lines of one to three fonts at sub-pixel positions."""
    ink, paper = ink_and_paper(draw)
    page = Image.new("RGB", (side, side), paper)
    pen, y = ImageDraw.Draw(page), float(draw.uniform(0, 12))
    size = int(draw.integers(9, 30))
    font = some_font(draw, size)
    while y < side:
        if draw.random() < 0.15:
            size = int(draw.integers(8, 44))
            font = some_font(draw, size)
        tint = some_colour(draw) if draw.random() < 0.1 else ink
        pen.text((float(draw.uniform(-20, 12)), y), words(draw, int(draw.integers(6, 24))), tint, font)
        y += size * float(draw.uniform(1.1, 1.6))
    return page


def interface(draw: Draw, side: int) -> Image.Image:
    """Bars, cards, buttons and labels."""
    ink, paper = ink_and_paper(draw)
    page = Image.new("RGB", (side, side), paper)
    pen = ImageDraw.Draw(page)
    for _ in range(int(draw.integers(8, 24))):
        x, y = (int(value) for value in draw.integers(-20, side, 2))
        w, h = int(draw.integers(20, 220)), int(draw.integers(12, 90))
        fill = some_colour(draw) if draw.random() < 0.6 else paper
        edge = some_colour(draw) if draw.random() < 0.6 else None
        pen.rounded_rectangle((x, y, x + w, y + h), int(draw.integers(0, 10)), fill, edge, int(draw.integers(1, 3)))
        font = some_font(draw, int(draw.integers(9, 18)))
        label = (255, 255, 255) if sum(fill) < 380 else (20, 20, 20)
        pen.text((x + float(draw.uniform(4, 9)), y + float(draw.uniform(2, 8))), words(draw, 3), label, font)
        if draw.random() < 0.3:
            pen.line((0, y, side, y), ink)
    return page


def chart(draw: Draw, side: int) -> Image.Image:
    """Axes, grid lines, curves and bars, smoothed from twice the size."""
    ink, paper = ink_and_paper(draw)
    page = Image.new("RGB", (2 * side, 2 * side), paper)
    pen, step = ImageDraw.Draw(page), int(draw.integers(30, 120))
    for at in range(step, 2 * side, step):
        pen.line((at, 0, at, 2 * side), some_colour(draw, 120, 220), 2)
        pen.line((0, at, 2 * side, at), some_colour(draw, 120, 220), 2)
    for _ in range(int(draw.integers(2, 6))):
        x = np.linspace(0, 2 * side, 60)
        y = side + np.cumsum(draw.normal(0, side / 20, 60))
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        pen.line(points, some_colour(draw), int(draw.integers(1, 8)), joint="curve")
    for at in range(step // 2, 2 * side, step):
        top = int(draw.integers(side, 2 * side))
        pen.rectangle((at, top, at + step // 2, 2 * side), some_colour(draw), ink)
    page = page.resize((side, side), Image.Resampling.BOX)
    pen = ImageDraw.Draw(page)
    for at in range(10, side, 60):
        pen.text((at, side - 40.5), str(int(draw.integers(0, 999))), ink, some_font(draw, 12))
    return page


def shapes(draw: Draw, side: int) -> Image.Image:
    """Line art and flat shapes, smoothed from twice the size."""
    ink, paper = ink_and_paper(draw)
    page = Image.new("RGB", (2 * side, 2 * side), paper)
    pen = ImageDraw.Draw(page)
    for _ in range(int(draw.integers(15, 50))):
        points = draw.normal(0, draw.uniform(20, 160), (int(draw.integers(3, 7)), 2)) + draw.random(2) * 2 * side
        corners = [(float(x), float(y)) for x, y in points]
        (x0, y0), (x1, y1) = points.min(0), points.max(0)
        kind, width = draw.integers(4), int(draw.integers(1, 9))
        if kind == 0:
            pen.polygon(corners, some_colour(draw), ink, width)
        elif kind == 1:
            pen.ellipse((x0, y0, x1, y1), some_colour(draw), ink, width)
        elif kind == 2:
            pen.arc((x0, y0, x1, y1), float(draw.uniform(0, 180)), float(draw.uniform(180, 360)), ink, width)
        else:
            pen.line(corners, some_colour(draw), width, joint="curve")
    return page.resize((side, side), Image.Resampling.BOX)


def pixel_art(draw: Draw, side: int) -> Image.Image:
    """Large square pixels of few colours, mirrored as sprites are."""
    cell = int(draw.integers(3, 13))
    count = side // cell + 1
    palette = draw.integers(0, 256, (int(draw.integers(3, 9)), 3))
    half = palette[draw.choice(len(palette), (count, count // 2 + 1))]
    # Runs instead of noise: each cell keeps its left neighbour's colour half of the time.
    keep = draw.random(half.shape[:2]) < 0.5
    for column in range(1, half.shape[1]):
        half[keep[:, column], column] = half[keep[:, column], column - 1]
    grid = np.concatenate([half, half[:, ::-1]], axis=1)[:count, :count].astype(np.uint8)
    return Image.fromarray(grid).resize((count * cell,) * 2, Image.Resampling.NEAREST).crop((0, 0, side, side))


# Text is what blurs most visibly: half of the pages.
PAGES: tuple[tuple[float, Callable[[Draw, int], Image.Image]], ...] = (
    (0.45, text_page),
    (0.25, interface),
    (0.1, chart),
    (0.12, shapes),
    (0.08, pixel_art),
)


def page(seed: int, side: int = 480) -> NDArray[np.uint8]:
    """Page number `seed`, [side, side, 3]; the same on every machine with the same fonts."""
    draw, kind = begun(seed)
    return np.asarray(kind(draw, side))


def begun(seed: int) -> tuple[Draw, Callable[[Draw, int], Image.Image]]:
    """What page number `seed` is drawn with, and by."""
    draw = np.random.default_rng([seed, 77])
    return draw, PAGES[draw.choice(len(PAGES), p=[share for share, _ in PAGES])][1]


def is_pixel_art(seed: int) -> bool:
    return begun(seed)[1] is pixel_art
