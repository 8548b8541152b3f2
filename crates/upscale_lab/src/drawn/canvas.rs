//! A canvas for the demo's own pictures: shapes are filled sample by sample, two samples a pixel each way, and
//! the finished picture is their mean. Coordinates are pixels of the finished picture, y downward.

use upscale_image::raster::Rgb8;

/// Samples a pixel each way; the pictures are shrunk four times afterwards, which smooths what is left.
const GRAIN: usize = 2;

/// Red, green, blue, nominally 0 to 255.
pub(crate) type Color = [f32; 3];
/// A place on the canvas.
pub(crate) type Point = (f32, f32);

/// What is painted on.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    samples: Vec<[u8; 3]>,
}

/// A rectangle: left, top, right, bottom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area(
    pub(crate) f32,
    pub(crate) f32,
    pub(crate) f32,
    pub(crate) f32,
);

impl Canvas {
    /// Black, of this many pixels.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let samples = vec![[0; 3]; width * height * GRAIN * GRAIN];
        Self {
            width,
            height,
            samples,
        }
    }

    /// Gives every sample in the area the colour that `color` has for its place, where it has one.
    pub(crate) fn paint(&mut self, area: Area, color: impl Fn(f32, f32) -> Option<Color>) {
        let clamp = |at: f32, size: usize| {
            ((at * GRAIN as f32).round().max(0.0) as usize).min(size * GRAIN)
        };
        let columns = clamp(area.0, self.width)..clamp(area.2, self.width);
        for row in clamp(area.1, self.height)..clamp(area.3, self.height) {
            for column in columns.clone() {
                if let Some(color) = color(centre(column), centre(row)) {
                    self.samples[row * self.width * GRAIN + column] = color.map(level);
                }
            }
        }
    }

    /// What has been painted at a place; the nearest inside for places outside.
    pub(crate) fn at(&self, x: f32, y: f32) -> Color {
        let nearest =
            |at: f32, size: usize| ((at * GRAIN as f32).max(0.0) as usize).min(size * GRAIN - 1);
        let place = nearest(y, self.height) * self.width * GRAIN + nearest(x, self.width);
        self.samples[place].map(f32::from)
    }

    /// One colour.
    pub(crate) fn fill(&mut self, area: Area, color: Color) {
        self.paint(area, |_, _| Some(color));
    }

    /// One colour with round corners.
    pub(crate) fn round(&mut self, area: Area, radius: f32, color: Color) {
        self.paint(area, |x, y| {
            let dx = (area.0 + radius - x).max(x - area.2 + radius).max(0.0);
            let dy = (area.1 + radius - y).max(y - area.3 + radius).max(0.0);
            (dx * dx + dy * dy <= radius * radius).then_some(color)
        });
    }

    /// A disc.
    pub(crate) fn disc(&mut self, (cx, cy): Point, radius: f32, color: Color) {
        let area = Area(cx - radius, cy - radius, cx + radius, cy + radius);
        self.paint(area, |x, y| {
            ((x - cx).hypot(y - cy) <= radius).then_some(color)
        });
    }

    /// A line with round ends.
    pub(crate) fn line(&mut self, from: Point, to: Point, width: f32, color: Color) {
        let half = width / 2.0;
        let area = Area(
            from.0.min(to.0) - half,
            from.1.min(to.1) - half,
            from.0.max(to.0) + half,
            from.1.max(to.1) + half,
        );
        self.paint(area, |x, y| {
            (distance((x, y), from, to) <= half).then_some(color)
        });
    }

    /// Lines from point to point.
    pub(crate) fn lines(&mut self, points: &[Point], width: f32, color: Color) {
        for pair in points.windows(2) {
            self.line(pair[0], pair[1], width, color);
        }
    }

    /// A polygon, even-odd, with a colour for every place.
    pub(crate) fn polygon(&mut self, points: &[Point], color: impl Fn(f32, f32) -> Color) {
        let fold = |pick: fn(&Point) -> f32, best: fn(f32, f32) -> f32, start| {
            points.iter().map(pick).fold(start, best)
        };
        let area = Area(
            fold(|point| point.0, f32::min, f32::INFINITY),
            fold(|point| point.1, f32::min, f32::INFINITY),
            fold(|point| point.0, f32::max, f32::NEG_INFINITY),
            fold(|point| point.1, f32::max, f32::NEG_INFINITY),
        );
        self.paint(area, |x, y| is_inside(points, x, y).then(|| color(x, y)));
    }

    /// The finished picture.
    pub(crate) fn finish(self) -> Rgb8 {
        Rgb8::paint(self.width, self.height, |x, y| {
            let mut sums = [0u32; 3];
            for row in y * GRAIN..(y + 1) * GRAIN {
                let start = row * self.width * GRAIN + x * GRAIN;
                for sample in &self.samples[start..start + GRAIN] {
                    sums.iter_mut()
                        .zip(sample)
                        .for_each(|(sum, &value)| *sum += u32::from(value));
                }
            }
            sums.map(|sum| ((sum as f32) / (GRAIN * GRAIN) as f32).round() as u8)
        })
    }
}

fn centre(sample: usize) -> f32 {
    (sample as f32 + 0.5) / GRAIN as f32
}

fn level(value: f32) -> u8 {
    value.clamp(0.0, 255.0).round() as u8
}

/// From a point to the nearest one of a segment.
fn distance((x, y): Point, (ax, ay): Point, (bx, by): Point) -> f32 {
    let (dx, dy) = (bx - ax, by - ay);
    let length = (dx * dx + dy * dy).max(1e-9);
    let along = (((x - ax) * dx + (y - ay) * dy) / length).clamp(0.0, 1.0);
    (x - ax - along * dx).hypot(y - ay - along * dy)
}

fn is_inside(points: &[Point], x: f32, y: f32) -> bool {
    let mut inside = false;
    let mut previous = points[points.len() - 1];
    for &point in points {
        let crosses = (point.1 > y) != (previous.1 > y);
        if crosses && x < (previous.0 - point.0) * (y - point.1) / (previous.1 - point.1) + point.0
        {
            inside = !inside;
        }
        previous = point;
    }
    inside
}

/// Between two colours: 0 is the first, 1 the second.
pub(crate) fn mix(from: Color, to: Color, share: f32) -> Color {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|c| from[c] + (to[c] - from[c]) * share)
}

/// Brighter or darker.
pub(crate) fn shade(color: Color, factor: f32) -> Color {
    color.map(|value| value * factor)
}

/// 0 below `low`, 1 above `high`, smooth between (Perlin's cubic).
pub(crate) fn smoothstep(low: f32, high: f32, value: f32) -> f32 {
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    share * share * (3.0 - 2.0 * share)
}

/// A number in 0..1 that looks random and is the same on every machine (the finalizer of MurmurHash3).
pub(crate) fn random(x: i32, y: i32, seed: u32) -> f32 {
    let mut hash = (x as u32).wrapping_mul(0x9E37_79B1)
        ^ (y as u32).wrapping_mul(0x85EB_CA77)
        ^ seed.wrapping_mul(0xC2B2_AE3D);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    ((hash ^ (hash >> 16)) >> 8) as f32 / 16_777_216.0
}

/// Value noise: random numbers at whole places, smooth between.
pub(crate) fn noise(x: f32, y: f32, seed: u32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (
        smoothstep(0.0, 1.0, x - left),
        smoothstep(0.0, 1.0, y - top),
    );
    let corner = |dx: i32, dy: i32| random(left as i32 + dx, top as i32 + dy, seed);
    let upper = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * fx;
    let lower = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * fx;
    upper + (lower - upper) * fy
}

/// Octaves of noise, each twice as fine and half as strong; 0 to 1.
pub(crate) fn clouds(x: f32, y: f32, octaves: u32, seed: u32) -> f32 {
    let octave = |n: u32| {
        let fine = (1 << n) as f32;
        noise(x * fine, y * fine, seed + n) / fine
    };
    (0..octaves).map(octave).sum::<f32>() / 2.0
}
