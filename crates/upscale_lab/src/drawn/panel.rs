//! A screenshot of a program that does not exist: text in several sizes, thin lines, icons, a chart. What blurs
//! first when small pictures are enlarged.

use super::canvas::{Area, Canvas, Color, Point, mix, random};
use super::letters::{Pen, write};

pub(crate) const WIDTH: usize = 1440;
pub(crate) const HEIGHT: usize = 960;

const INK: Color = [32.0, 38.0, 50.0];
const PALE: Color = [122.0, 132.0, 148.0];
const BLUE: Color = [38.0, 108.0, 214.0];
const RED: Color = [214.0, 64.0, 58.0];
const GREEN: Color = [36.0, 152.0, 102.0];
const WHITE: Color = [255.0, 255.0, 255.0];
const RULE: Color = [220.0, 225.0, 232.0];

/// Draws the whole picture.
pub(crate) fn draw() -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    canvas.fill(
        Area(0.0, 0.0, WIDTH as f32, HEIGHT as f32),
        [244.0, 246.0, 249.0],
    );
    bar(&mut canvas);
    list(&mut canvas);
    chart(&mut canvas);
    paragraph(&mut canvas);
    icons(&mut canvas);
    canvas
}

fn pen(height: f32, color: Color) -> Pen {
    Pen {
        height,
        width: (height / 7.5).max(2.2),
        color,
    }
}

fn bar(canvas: &mut Canvas) {
    canvas.fill(Area(0.0, 0.0, WIDTH as f32, 92.0), [24.0, 34.0, 56.0]);
    for (n, color) in [RED, [236.0, 178.0, 52.0], GREEN].into_iter().enumerate() {
        canvas.disc((46.0 + 38.0 * n as f32, 46.0), 11.0, color);
    }
    write(canvas, "Harbour office", (180.0, 60.0), pen(32.0, WHITE));
    let tabs = ["Ships", "Tides", "Berths", "Dues"];
    for (n, tab) in tabs.into_iter().enumerate() {
        let x = 740.0 + 170.0 * n as f32;
        let color = if n == 1 { WHITE } else { [150.0, 164.0, 190.0] };
        let end = write(canvas, tab, (x, 58.0), pen(24.0, color));
        if n == 1 {
            canvas.fill(Area(x, 80.0, end - 6.0, 86.0), [92.0, 160.0, 250.0]);
        }
    }
}

fn card(canvas: &mut Canvas, area: Area) {
    let Area(left, top, right, bottom) = area;
    canvas.round(
        Area(left - 2.0, top, right + 2.0, bottom + 5.0),
        18.0,
        [222.0, 227.0, 235.0],
    );
    canvas.round(area, 16.0, WHITE);
}

fn list(canvas: &mut Canvas) {
    card(canvas, Area(40.0, 130.0, 560.0, 910.0));
    write(canvas, "Arrivals", (76.0, 190.0), pen(34.0, INK));
    write(
        canvas,
        "22 November, 14:05",
        (300.0, 188.0),
        pen(19.0, PALE),
    );
    let rows = [
        ("Anna Rosa", "Hamburg", "0.7", GREEN),
        ("Nordlys", "Bergen", "1.4", GREEN),
        ("Bright Star", "Leith", "2.1", BLUE),
        ("De Hoop", "Urk", "12.6", BLUE),
        ("Sao Bento", "Lisboa", "0.7", RED),
        ("Cap Gris", "Calais", "3.5", GREEN),
        ("Wilhelmina", "Delft", "4.9", BLUE),
        ("Mary Ellen", "Cork", "8.4", RED),
    ];
    for (n, (ship, port, credits, state)) in rows.into_iter().enumerate() {
        let y = 262.0 + 78.0 * n as f32;
        canvas.fill(Area(76.0, y - 42.0, 524.0, y - 40.0), RULE);
        canvas.disc((92.0, y - 2.0), 10.0, state);
        write(canvas, ship, (120.0, y + 2.0), pen(25.0, INK));
        write(canvas, port, (120.0, y + 27.0), pen(18.0, PALE));
        write(canvas, credits, (440.0, y + 6.0), pen(24.0, INK));
    }
}

/// Bars and two curves over thin rules.
fn chart(canvas: &mut Canvas) {
    card(canvas, Area(600.0, 130.0, 1400.0, 540.0));
    write(canvas, "Tide at the mole", (636.0, 188.0), pen(30.0, INK));
    write(canvas, "metres", (636.0, 222.0), pen(19.0, PALE));
    for n in 0..5 {
        let y = 470.0 - 56.0 * n as f32;
        canvas.fill(Area(690.0, y, 1364.0, y + 1.6), RULE);
        write(canvas, &format!("{n}.0"), (640.0, y + 6.0), pen(18.0, PALE));
    }
    for n in 0..24 {
        let x = 700.0 + 27.6 * n as f32;
        let tall = 30.0 + 120.0 * random(n, 1, 7);
        canvas.round(
            Area(x, 470.0 - tall, x + 15.0, 470.0),
            3.0,
            mix(BLUE, WHITE, 0.72),
        );
        if n % 4 == 0 {
            write(canvas, &format!("{n:02}"), (x, 504.0), pen(18.0, PALE));
        }
    }
    let curve = |shift: f32, tall: f32| -> Vec<Point> {
        let at = |n: i32| {
            let x = 700.0 + 6.6 * n as f32;
            (
                x,
                350.0 - tall * (n as f32 / 13.0 + shift).sin() - 14.0 * (n as f32 / 5.0).cos(),
            )
        };
        (0..=99).map(at).collect()
    };
    canvas.lines(&curve(0.0, 92.0), 5.0, BLUE);
    canvas.lines(&curve(1.1, 64.0), 2.6, RED);
}

fn paragraph(canvas: &mut Canvas) {
    card(canvas, Area(600.0, 576.0, 1040.0, 910.0));
    write(canvas, "Notice", (636.0, 630.0), pen(30.0, INK));
    let lines = [
        "Masters of vessels over 20 m",
        "report here before noon.",
        "The north lock is closed from",
        "18:30 to 06:15, quiet is kept",
        "on the inner quay. Power: 12%",
        "below the summer rate.",
    ];
    for (n, text) in lines.into_iter().enumerate() {
        write(
            canvas,
            text,
            (636.0, 684.0 + 40.0 * n as f32),
            Pen {
                height: 20.5,
                width: 2.8,
                color: INK,
            },
        );
    }
}

/// A compass with fine rays, a grid of squares, a button.
fn icons(canvas: &mut Canvas) {
    card(canvas, Area(1076.0, 576.0, 1400.0, 910.0));
    let centre = (1166.0, 676.0);
    canvas.disc(centre, 74.0, INK);
    canvas.disc(centre, 69.0, WHITE);
    for ray in 0..36 {
        let (sin, cos) = (ray as f32 * std::f32::consts::PI / 18.0).sin_cos();
        let (inner, width) = if ray % 9 == 0 {
            (34.0, 4.0)
        } else {
            (54.0, 1.8)
        };
        let at = |radius: f32| (centre.0 + radius * cos, centre.1 + radius * sin);
        canvas.line(at(inner), at(64.0), width, INK);
    }
    canvas.polygon(
        &[(1166.0, 630.0), (1178.0, 676.0), (1154.0, 676.0)],
        |_, _| RED,
    );
    canvas.polygon(
        &[(1166.0, 722.0), (1178.0, 676.0), (1154.0, 676.0)],
        |_, _| PALE,
    );
    for row in 0..13 {
        for column in 0..13 {
            if random(column, row, 31) > 0.5 {
                let (x, y) = (1270.0 + 8.0 * column as f32, 612.0 + 8.0 * row as f32);
                canvas.fill(Area(x, y, x + 8.0, y + 8.0), INK);
            }
        }
    }
    canvas.round(Area(1106.0, 800.0, 1370.0, 870.0), 35.0, BLUE);
    write(canvas, "Moor here", (1150.0, 847.0), pen(26.0, WHITE));
}
