//! A photograph of a place that does not exist: houses at a harbour under a summer sky, with their reflections.
//! Bricks, panes, tiles and rigging are the fine, sharp things that an upscaler has to bring back.

use super::canvas::{Area, Canvas, Color, Point, clouds, mix, noise, random, shade, smoothstep};

pub(crate) const WIDTH: usize = 1440;
pub(crate) const HEIGHT: usize = 960;
/// Where the water begins.
const WATER: f32 = 690.0;
/// Where the houses stand.
const QUAY: f32 = 650.0;

/// Draws the whole picture.
pub(crate) fn draw() -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    sky(&mut canvas);
    hills(&mut canvas);
    for house in HOUSES {
        house.draw(&mut canvas);
    }
    quay(&mut canvas);
    boat(&mut canvas);
    water(&mut canvas);
    canvas
}

fn sky(canvas: &mut Canvas) {
    let all = Area(0.0, 0.0, WIDTH as f32, WATER);
    canvas.paint(all, |x, y| {
        let blue = mix([58.0, 112.0, 178.0], [196.0, 214.0, 226.0], y / 560.0);
        let (u, v) = (x / 330.0, y / 150.0);
        let warp = clouds(u * 0.7 + 3.0, v * 0.7, 4, 50);
        let cover = clouds(u + warp, v + 0.6 * warp, 6, 11);
        let lit = clouds(u + warp - 0.06, v + 0.6 * warp - 0.12, 6, 11);
        let white = mix(
            [252.0, 250.0, 246.0],
            [168.0, 178.0, 194.0],
            0.5 + 3.2 * (cover - lit),
        );
        Some(mix(blue, white, smoothstep(0.46, 0.72, cover)))
    });
}

fn hills(canvas: &mut Canvas) {
    for (n, (base, tall, color)) in [
        (470.0, 90.0, [142.0, 164.0, 180.0]),
        (530.0, 70.0, [102.0, 128.0, 118.0]),
    ]
    .into_iter()
    .enumerate()
    {
        canvas.paint(Area(0.0, 300.0, WIDTH as f32, QUAY), |x, y| {
            let ridge = base - tall * (clouds(x / 260.0, 7.0, 6, 70 + n as u32) - 0.3) * 1.6;
            let wood = noise(x / 3.0, y / 4.0, 80) * 0.16 + 0.92;
            (y > ridge).then(|| shade(color, wood))
        });
    }
}

/// How a house ends at the top.
#[derive(Clone, Copy)]
enum Gable {
    Pointed,
    Stepped,
    Flat,
}

struct House {
    left: f32,
    right: f32,
    eaves: f32,
    gable: Gable,
    wall: Color,
    floors: u32,
    columns: u32,
    bricks: bool,
}

const HOUSES: [House; 8] = [
    House {
        left: -20.0,
        right: 150.0,
        eaves: 380.0,
        gable: Gable::Pointed,
        wall: [176.0, 92.0, 70.0],
        floors: 4,
        columns: 3,
        bricks: true,
    },
    House {
        left: 150.0,
        right: 330.0,
        eaves: 330.0,
        gable: Gable::Stepped,
        wall: [222.0, 198.0, 152.0],
        floors: 4,
        columns: 3,
        bricks: false,
    },
    House {
        left: 330.0,
        right: 480.0,
        eaves: 420.0,
        gable: Gable::Pointed,
        wall: [110.0, 134.0, 142.0],
        floors: 3,
        columns: 2,
        bricks: false,
    },
    House {
        left: 480.0,
        right: 700.0,
        eaves: 300.0,
        gable: Gable::Flat,
        wall: [158.0, 74.0, 58.0],
        floors: 5,
        columns: 4,
        bricks: true,
    },
    House {
        left: 700.0,
        right: 870.0,
        eaves: 360.0,
        gable: Gable::Pointed,
        wall: [232.0, 220.0, 196.0],
        floors: 4,
        columns: 3,
        bricks: false,
    },
    House {
        left: 870.0,
        right: 1060.0,
        eaves: 400.0,
        gable: Gable::Stepped,
        wall: [188.0, 110.0, 78.0],
        floors: 3,
        columns: 3,
        bricks: true,
    },
    House {
        left: 1060.0,
        right: 1250.0,
        eaves: 340.0,
        gable: Gable::Pointed,
        wall: [202.0, 172.0, 96.0],
        floors: 4,
        columns: 3,
        bricks: false,
    },
    House {
        left: 1250.0,
        right: 1460.0,
        eaves: 310.0,
        gable: Gable::Flat,
        wall: [134.0, 62.0, 52.0],
        floors: 5,
        columns: 4,
        bricks: true,
    },
];

impl House {
    fn draw(&self, canvas: &mut Canvas) {
        let outline = self.outline();
        canvas.polygon(&outline, |x, y| self.wall_at(x, y));
        let top: Vec<Point> = outline[1..outline.len() - 1].to_vec();
        canvas.lines(&top, 5.0, [236.0, 230.0, 218.0]);
        if matches!(self.gable, Gable::Pointed) {
            self.tiles(canvas);
        }
        self.windows(canvas);
        self.door(canvas);
        // The neighbour's shadow along the left edge.
        let area = Area(self.left, self.eaves, self.left + 5.0, QUAY);
        canvas.fill(area, shade(self.wall, 0.55));
    }

    /// From the left foot over the gable to the right foot.
    fn outline(&self) -> Vec<Point> {
        let (left, right, eaves) = (self.left, self.right, self.eaves);
        let (middle, width) = ((left + right) / 2.0, right - left);
        let mut points = vec![(left, QUAY), (left, eaves)];
        match self.gable {
            Gable::Pointed => points.push((middle, eaves - 0.62 * width)),
            Gable::Flat => points.extend([(left, eaves - 26.0), (right, eaves - 26.0)]),
            Gable::Stepped => {
                let step = |n: f32| (n * width / 9.0, eaves - n * 26.0);
                for n in 0..4 {
                    let ((inset, y), (_, above)) = (step(n as f32), step(n as f32 + 1.0));
                    points.extend([(left + inset, y), (left + inset, above)]);
                }
                for n in (0..4).rev() {
                    let ((inset, y), (_, above)) = (step(n as f32), step(n as f32 + 1.0));
                    points.extend([(right - inset, above), (right - inset, y)]);
                }
            }
        }
        points.extend([(right, eaves), (right, QUAY)]);
        points
    }

    fn wall_at(&self, x: f32, y: f32) -> Color {
        let sun = 0.86 + 0.2 * smoothstep(self.left, self.right, x);
        let damp = 1.0
            - 0.16
                * smoothstep(
                    QUAY - 120.0,
                    QUAY,
                    y + 40.0 * clouds(x / 30.0, y / 50.0, 3, 90),
                );
        let base = shade(self.wall, sun * damp);
        if !self.bricks {
            return shade(base, 0.95 + 0.1 * clouds(x / 24.0, y / 40.0, 5, 91));
        }
        let row = (y / 8.0).floor();
        let column = (x / 18.0 + 0.5 * (row % 2.0)).floor();
        let (u, v) = ((x / 18.0 + 0.5 * (row % 2.0)).fract(), (y / 8.0).fract());
        if v < 0.2 || u < 0.09 {
            return mix(base, [196.0, 186.0, 172.0], 0.55);
        }
        shade(base, 0.86 + 0.28 * random(column as i32, row as i32, 92))
    }

    /// Two slopes of roof tiles behind the gable's rim.
    fn tiles(&self, canvas: &mut Canvas) {
        let (middle, width) = ((self.left + self.right) / 2.0, self.right - self.left);
        let peak = self.eaves - 0.62 * width;
        let inner = [
            (self.left + 14.0, self.eaves - 12.0),
            (middle, peak + 18.0),
            (self.right - 14.0, self.eaves - 12.0),
        ];
        let tint = [122.0, 60.0, 46.0];
        canvas.polygon(&inner, |x, y| {
            let row = (y / 9.0).floor();
            let u = (x / 12.0 + 0.5 * (row % 2.0)).fract();
            let v = (y / 9.0).fract();
            let round = 1.0 - 0.35 * ((u - 0.5) * 2.0).powi(2);
            let rim = if v > 0.8 { 0.6 } else { 1.0 };
            let worn = 0.85
                + 0.3
                    * random(
                        (x / 12.0 + 0.5 * (row % 2.0)).floor() as i32,
                        row as i32,
                        93,
                    );
            shade(tint, round * rim * worn)
        });
        canvas.round(
            Area(
                middle - 12.0,
                self.eaves - 70.0,
                middle + 12.0,
                self.eaves - 36.0,
            ),
            12.0,
            [232.0, 228.0, 220.0],
        );
        canvas.round(
            Area(
                middle - 9.0,
                self.eaves - 67.0,
                middle + 9.0,
                self.eaves - 39.0,
            ),
            9.0,
            [52.0, 60.0, 74.0],
        );
        canvas.line(
            (middle, self.eaves - 66.0),
            (middle, self.eaves - 40.0),
            2.0,
            [232.0, 228.0, 220.0],
        );
    }

    fn windows(&self, canvas: &mut Canvas) {
        let pitch = (self.right - self.left) / self.columns as f32;
        let floor = (QUAY - self.eaves) / self.floors as f32;
        for storey in 0..self.floors - 1 {
            for column in 0..self.columns {
                let left = self.left + pitch * (column as f32 + 0.24);
                let top = self.eaves + floor * (storey as f32 + 0.2);
                window(
                    canvas,
                    Area(left, top, left + 0.52 * pitch, top + 0.64 * floor),
                    column + 7 * storey,
                );
            }
        }
    }

    fn door(&self, canvas: &mut Canvas) {
        let floor = (QUAY - self.eaves) / self.floors as f32;
        let (middle, top) = ((self.left + self.right) / 2.0, QUAY - 0.84 * floor);
        let door = shade(
            [70.0, 96.0, 84.0],
            0.7 + 0.6 * random(self.left as i32, 3, 94),
        );
        canvas.fill(
            Area(middle - 22.0, top, middle + 22.0, QUAY),
            [238.0, 234.0, 226.0],
        );
        canvas.fill(Area(middle - 18.0, top + 4.0, middle + 18.0, QUAY), door);
        for panel in 0..2 {
            let x = middle - 14.0 + 15.0 * panel as f32;
            canvas.fill(Area(x, top + 30.0, x + 13.0, QUAY - 8.0), shade(door, 0.72));
        }
        canvas.disc((middle + 13.0, QUAY - 28.0), 2.2, [236.0, 204.0, 120.0]);
        for side in [-1.0, 1.0] {
            let centre = middle + side * 0.3 * (self.right - self.left);
            window(
                canvas,
                Area(centre - 24.0, top + 4.0, centre + 24.0, QUAY - 22.0),
                5,
            );
        }
    }
}

/// Frame, panes with a sky in them, a sill with its shadow.
fn window(canvas: &mut Canvas, area: Area, seed: u32) {
    let Area(left, top, right, bottom) = area;
    let white = [240.0, 238.0, 232.0];
    canvas.fill(
        Area(left - 4.0, top - 4.0, right + 4.0, bottom + 4.0),
        white,
    );
    canvas.paint(area, |x, y| {
        let glass = mix(
            [42.0, 54.0, 68.0],
            [120.0, 146.0, 168.0],
            smoothstep(bottom, top, y + 0.4 * (x - left)),
        );
        let glint = smoothstep(0.55, 0.6, noise(x / 34.0, y / 60.0, 95 + seed));
        Some(mix(glass, [196.0, 212.0, 222.0], 0.45 * glint))
    });
    let middle = (left + right) / 2.0;
    canvas.fill(Area(middle - 1.6, top, middle + 1.6, bottom), white);
    for third in 1..3 {
        let y = top + (bottom - top) * third as f32 / 3.0;
        canvas.fill(Area(left, y - 1.3, right, y + 1.3), white);
    }
    canvas.fill(
        Area(left - 7.0, bottom + 4.0, right + 7.0, bottom + 8.0),
        [214.0, 208.0, 196.0],
    );
    canvas.fill(
        Area(left - 6.0, bottom + 8.0, right + 6.0, bottom + 11.0),
        [88.0, 66.0, 56.0],
    );
}

fn quay(canvas: &mut Canvas) {
    canvas.paint(Area(0.0, QUAY, WIDTH as f32, WATER), |x, y| {
        let row = ((y - QUAY) / 13.0).floor();
        let along = x / 46.0 + 0.4 * row;
        let (u, v) = (along.fract(), ((y - QUAY) / 13.0).fract());
        let stone = shade(
            [146.0, 140.0, 130.0],
            0.78 + 0.3 * random(along.floor() as i32, row as i32, 96),
        );
        let grain = shade(stone, 0.9 + 0.2 * clouds(x / 7.0, y / 7.0, 3, 97));
        let wet = shade(grain, 1.0 - 0.5 * smoothstep(WATER - 16.0, WATER, y));
        Some(if v < 0.12 || u < 0.04 {
            shade(wet, 0.5)
        } else {
            wet
        })
    });
    for post in 0..12 {
        let x = 60.0 + 124.0 * post as f32;
        canvas.round(
            Area(x, QUAY - 20.0, x + 8.0, QUAY + 2.0),
            4.0,
            [48.0, 46.0, 48.0],
        );
    }
}

/// A sailing boat: the thin dark lines against the bright sky are the hardest part of the picture.
fn boat(canvas: &mut Canvas) {
    let (bow, stern, deck) = (1010.0, 640.0, 640.0);
    let rope = [54.0, 48.0, 46.0];
    let top = (820.0, 110.0);
    canvas.line((820.0, deck), top, 6.0, [122.0, 86.0, 54.0]);
    canvas.line((690.0, 545.0), (818.0, 535.0), 5.0, [132.0, 94.0, 60.0]);
    for (x, y) in [
        (bow - 6.0, deck),
        (bow - 60.0, deck),
        (stern + 8.0, deck),
        (760.0, deck),
        (880.0, deck),
    ] {
        canvas.line(top, (x, y), 1.8, rope);
    }
    for step in 1..9 {
        let y = 620.0 - 42.0 * step as f32;
        let reach = (y - top.1) / (deck - top.1) * 60.0;
        canvas.line((820.0 - reach, y), (820.0 + reach, y), 1.3, rope);
    }
    canvas.polygon(&[(820.0, 116.0), (820.0, 140.0), (874.0, 130.0)], |x, _| {
        if x < 838.0 {
            [206.0, 48.0, 44.0]
        } else {
            [244.0, 242.0, 236.0]
        }
    });
    let hull = [
        (stern, deck - 4.0),
        (stern + 22.0, WATER + 4.0),
        (bow - 62.0, WATER + 4.0),
        (bow, deck - 14.0),
    ];
    canvas.polygon(&hull, |x, y| {
        let planks = if ((y - deck) / 9.0).rem_euclid(1.0) < 0.14 {
            0.7
        } else {
            1.0
        };
        let color = if y < deck + 6.0 {
            [240.0, 236.0, 228.0]
        } else {
            [34.0, 66.0, 92.0]
        };
        shade(color, planks * (0.8 + 0.25 * smoothstep(stern, bow, x)))
    });
    canvas.round(
        Area(716.0, deck - 34.0, 800.0, deck - 2.0),
        6.0,
        [226.0, 216.0, 198.0],
    );
    for port in 0..3 {
        canvas.disc(
            (734.0 + 24.0 * port as f32, deck - 18.0),
            6.5,
            [58.0, 70.0, 84.0],
        );
    }
}

/// What stands above, upside down, broken by ripples that grow toward the viewer.
fn water(canvas: &mut Canvas) {
    let below = Area(0.0, WATER, WIDTH as f32, HEIGHT as f32);
    let mut mirrored = Canvas::new(WIDTH, HEIGHT);
    mirrored.paint(below, |x, y| {
        let depth = y - WATER;
        let size = 1.0 + depth / 26.0;
        let wave = noise(x / (9.0 * size), y / (1.6 * size), 98) - 0.5;
        let swell = noise(x / (38.0 * size), y / (6.0 * size), 99) - 0.5;
        let source_y = WATER - 1.25 * depth + (wave * 16.0 + swell * 20.0) * size.sqrt();
        let seen = canvas.at(x + 7.0 * wave * size, source_y.clamp(0.0, WATER - 1.0));
        let deep = mix(
            seen,
            [38.0, 66.0, 78.0],
            0.34 + 0.3 * smoothstep(0.0, 280.0, depth),
        );
        let glitter = smoothstep(0.36, 0.46, wave + 0.3 * swell);
        Some(mix(deep, [214.0, 226.0, 232.0], 0.5 * glitter))
    });
    canvas.paint(below, |x, y| Some(mirrored.at(x, y)));
}
