//! A photograph of a table that does not exist: a tin with its label, oranges and a lemon on linen and wood, in the light of a
//! window. Lettering, weave, peel and grain are what an upscaler has to bring back; the background is out of focus.

use upscale_image::raster::Rgb8;

use super::{
    canvas::{Area, Canvas, clouds, mix, noise, random, smoothstep},
    letters::{Pen, write},
    light::{Camera, Dice, Hit, Ray, Vector, dot, minus, plus, seen, times, unit},
};

pub(super) const WIDTH: usize = 1440;
pub(super) const HEIGHT: usize = 960;

const CAMERA: Camera = Camera {
    at: [0.5, 2.9, -7.4],
    looks_at: [0.42, 0.86, 0.3],
    half_width: 0.335,
    lens: 0.11,
    focus: 7.3,
};
/// Where the wall behind the table is.
const WALL: f32 = 5.6;
/// The linen: left, right, front, back.
const LINEN: [f32; 4] = [-0.35, 3.4, -1.75, 0.95];

/// What stands on the table.
enum Thing {
    /// Middle, radii; how many pores go around it.
    Fruit(Vector, Vector, f32, Vector),
    /// Where it stands, radius, bottom, top.
    Can([f32; 2], f32, [f32; 2], Coat),
}

/// What a can is covered with.
#[derive(Clone, Copy)]
enum Coat {
    Label,
    Metal,
    Glass(Vector),
}

const THINGS: [Thing; 8] = [
    Thing::Can([-0.95, 0.25], 0.86, [0.0, 1.92], Coat::Label),
    Thing::Can([-0.95, 0.25], 0.89, [1.84, 2.06], Coat::Metal),
    Thing::Fruit(
        [0.72, 0.6, -0.35],
        [0.62, 0.6, 0.62],
        46.0,
        [0.88, 0.22, 0.012],
    ),
    Thing::Fruit(
        [2.02, 0.58, 0.2],
        [0.6, 0.58, 0.6],
        46.0,
        [0.9, 0.26, 0.016],
    ),
    Thing::Fruit(
        [1.62, 0.4, -0.95],
        [0.56, 0.4, 0.41],
        34.0,
        [0.93, 0.6, 0.03],
    ),
    Thing::Can(
        [2.6, 3.6],
        0.62,
        [0.0, 2.7],
        Coat::Glass([0.015, 0.09, 0.055]),
    ),
    Thing::Can(
        [2.6, 3.6],
        0.22,
        [2.7, 4.4],
        Coat::Glass([0.015, 0.09, 0.055]),
    ),
    Thing::Can([0.7, 4.2], 0.75, [0.0, 1.5], Coat::Glass([0.42, 0.1, 0.06])),
];

/// The scene at this size; `samples` light paths a pixel.
pub(super) fn draw(width: usize, height: usize, samples: u32) -> Rgb8 {
    let label = label();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let rows_each = height.div_ceil(threads);
    let mut picture = vec![0; width * height * 3];
    std::thread::scope(|scope| {
        for (band, rows) in picture.chunks_mut(rows_each * width * 3).enumerate() {
            let label = &label;
            scope.spawn(move || {
                for (i, pixel) in rows.chunks_mut(3).enumerate() {
                    let place = (i % width, band * rows_each + i / width);
                    pixel.copy_from_slice(&exposed(place, (width, height), samples, label));
                }
            });
        }
    });
    Rgb8::paint(width, height, |x, y| {
        let at = (y * width + x) * 3;
        [picture[at], picture[at + 1], picture[at + 2]]
    })
}

/// One pixel of the film.
fn exposed(
    (x, y): (usize, usize),
    (width, height): (usize, usize),
    samples: u32,
    label: &Canvas,
) -> [u8; 3] {
    let mut dice = Dice((random(x as i32, y as i32, 7) * 16_777_216.0) as u32 ^ 0x9E37_79B9);
    let find = |ray: Ray| find(ray, label);
    let mut light = [0.0; 3];
    for _ in 0..samples {
        let across = (x as f32 + dice.roll()) / width as f32 * 2.0 - 1.0;
        let down = ((y as f32 + dice.roll()) * 2.0 - height as f32) / width as f32;
        let ray = CAMERA.ray(across, down, &mut dice);
        // A single path may meet the window's mirror image: it counts as white, or it would leave a speck.
        light = plus(
            light,
            seen(ray, &find, &mut dice).map(|value| value.min(8.0)),
        );
    }
    light.map(|value| developed(value / samples as f32))
}

/// Light to a level of 255: a shoulder that keeps highlights (after Hable 2010), more contrast, then sRGB's curve.
fn developed(light: f32) -> u8 {
    let film = |v: f32| (v * (0.15 * v + 0.05) + 0.004) / (v * (0.15 * v + 0.5) + 0.06) - 0.066_667;
    let linear = (1.05 * film(4.4 * light) / film(11.2))
        .clamp(0.0, 1.0)
        .powf(1.3);
    let curved = match linear <= 0.003_130_8 {
        true => 12.92 * linear,
        false => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
    };
    (255.0 * curved).round() as u8
}

/// The nearest thing on the way.
fn find(ray: Ray, label: &Canvas) -> Option<Hit> {
    let mut nearest = [table(ray), wall(ray)].into_iter().flatten().min_by(closer);
    for thing in &THINGS {
        let found = match thing {
            Thing::Fruit(middle, radii, pores, color) => {
                fruit(ray, *middle, *radii, *pores, *color)
            }
            Thing::Can(place, radius, ends, coat) => can(ray, *place, *radius, *ends, *coat, label),
        };
        nearest = nearest.into_iter().chain(found).min_by(closer);
    }
    nearest
}

fn closer(one: &Hit, other: &Hit) -> std::cmp::Ordering {
    one.distance.total_cmp(&other.distance)
}

fn place(ray: Ray, distance: f32) -> Vector {
    plus(ray.from, times(ray.toward, distance))
}

fn table(ray: Ray) -> Option<Hit> {
    let distance = -ray.from[1] / ray.toward[1];
    if !(distance > 1e-4 && distance < 60.0) {
        return None;
    }
    let [x, _, z] = place(ray, distance);
    let [left, right, front, back] = LINEN;
    let slanted = x + 0.16 * z;
    if (left..right).contains(&slanted) && (front..back).contains(&(z - 0.05 * x)) {
        return Some(linen(distance, slanted, z - 0.05 * x));
    }
    // The cloth lies a little above the wood and shades it along its edges.
    let outside = (left - slanted)
        .max(slanted - right)
        .max(front - z + 0.05 * x)
        .max(z - 0.05 * x - back);
    let shade = 0.72 + 0.28 * smoothstep(0.0, 0.1, outside);
    Some(wood(distance, x, z, shade))
}

/// Planks along x.
fn wood(distance: f32, x: f32, z: f32, shade: f32) -> Hit {
    let plank = (z / 1.15).floor();
    let within = z / 1.15 - plank;
    let shift = 37.0 * random(plank as i32, 3, 11);
    let bend = clouds((x + shift) * 0.35, z * 1.3, 3, 20);
    let rings = ((z * 9.0 + bend * 13.0).sin() * 0.5 + 0.5).powf(1.6);
    let fibre = noise((x + shift) * 7.0, z * 150.0, 24);
    let fine = noise((x + shift) * 22.0, z * 420.0, 25);
    let share = 0.5 * rings + 0.3 * fibre + 0.2 * fine;
    let tone = 0.85 + 0.3 * random(plank as i32, 5, 12);
    let mut color = mix([0.15, 0.075, 0.035], [0.42, 0.25, 0.125], share);
    color = times(color, tone * shade);
    if !(0.012..0.988).contains(&within) {
        color = times(color, 0.25);
    }
    Hit {
        distance,
        normal: unit([0.05 * (fine - 0.5), 1.0, 0.12 * (fibre - 0.5)]),
        color,
        gloss: 0.035,
        roughness: 0.12,
    }
}

/// Threads over and under each other, two blue stripes and a hem.
fn linen(distance: f32, x: f32, z: f32) -> Hit {
    const THREAD: f32 = 0.021;
    let (u, v) = (x / THREAD, z / THREAD);
    let (column, row) = (u.floor(), v.floor());
    let is_warp = (column + row).rem_euclid(2.0) < 1.0;
    let (across, along) = match is_warp {
        true => (u - column, v - row),
        false => (v - row, u - column),
    };
    let round = (across - 0.5) * 2.0;
    let over = 1.0 - ((along - 0.5) * 2.0).powi(2);
    let thread = match is_warp {
        true => random(column as i32, 1, 31),
        false => random(1, row as i32, 32),
    };
    let from_hem = (x - LINEN[0]).min(z - LINEN[2]);
    let is_blue = (0.22..0.34).contains(&from_hem) || (0.4..0.43).contains(&from_hem);
    let base = match is_blue {
        true => [0.09, 0.16, 0.36],
        false => [0.74, 0.7, 0.62],
    };
    let hem = match from_hem < 0.1 && (0.085..0.1).contains(&from_hem) {
        true => 0.7,
        false => 1.0,
    };
    let light = (0.72 + 0.28 * over) * (0.82 + 0.3 * thread) * (1.0 - 0.3 * round * round) * hem;
    let fold = clouds(x * 1.3, z * 1.1, 3, 33) - 0.5;
    let tilt = match is_warp {
        true => [0.5 * round, 1.0, 0.3 * (along - 0.5)],
        false => [0.3 * (along - 0.5), 1.0, 0.5 * round],
    };
    Hit {
        distance,
        normal: unit(plus(tilt, [0.35 * fold, 0.0, 0.2 * fold])),
        color: times(base, light),
        gloss: 0.0,
        roughness: 1.0,
    }
}

fn wall(ray: Ray) -> Option<Hit> {
    let distance = (WALL - ray.from[2]) / ray.toward[2];
    let [x, y, _] = place(ray, distance);
    let tiles = match y < 1.7 {
        true => [0.42, 0.47, 0.46],
        false => [0.62, 0.58, 0.5],
    };
    (distance > 1e-4 && distance < 60.0).then(|| Hit {
        distance,
        normal: [0.0, 0.0, -1.0],
        color: times(tiles, 0.9 + 0.2 * clouds(x * 0.8, y * 0.8, 3, 41)),
        gloss: 0.0,
        roughness: 1.0,
    })
}

/// An ellipsoid with pores; darker and greener where its stalk was.
fn fruit(ray: Ray, middle: Vector, radii: Vector, pores: f32, color: Vector) -> Option<Hit> {
    let scaled = |v: Vector| std::array::from_fn(|i| v[i] / radii[i]);
    let (from, toward): (Vector, Vector) = (scaled(minus(ray.from, middle)), scaled(ray.toward));
    let (a, b) = (dot(toward, toward), dot(from, toward));
    let within = b * b - a * (dot(from, from) - 1.0);
    let distance = (-b - within.max(0.0).sqrt()) / a;
    if within <= 0.0 || distance <= 1e-4 {
        return None;
    }
    let on: Vector = plus(from, times(toward, distance));
    // Pores by the cube's side that they lie on: no poles.
    let side = (0..3).fold(0, |best, i| {
        if on[i].abs() > on[best].abs() {
            i
        } else {
            best
        }
    });
    let (u, v) = (on[(side + 1) % 3] / on[side], on[(side + 2) % 3] / on[side]);
    let (dent, slope) = pore(u * pores / 3.0, v * pores / 3.0, 50 + side as u32);
    let mut normal: Vector = std::array::from_fn(|i| on[i] / radii[i]);
    normal = unit(normal);
    normal[(side + 1) % 3] += 0.34 * slope[0];
    normal[(side + 2) % 3] += 0.34 * slope[1];
    let blotch = clouds(u * 2.0 + 5.0, v * 2.0, 4, 60 + side as u32) - 0.5;
    let stalk = smoothstep(0.9, 1.0, on[1] + 0.02 * blotch);
    let ripe = times(color, (1.0 + 0.35 * blotch) * (1.0 - 0.22 * dent));
    Some(Hit {
        distance,
        normal: unit(normal),
        color: mix(ripe, [0.22, 0.2, 0.05], 0.7 * stalk).map(|value| value.clamp(0.0, 0.95)),
        gloss: 0.045,
        roughness: 0.2,
    })
}

/// How deep the nearest pore is here, 0 to 1, and which way it slopes.
fn pore(u: f32, v: f32, seed: u32) -> (f32, [f32; 2]) {
    let (mut depth, mut slope) = (0.0, [0.0; 2]);
    for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
        let cell = (u.floor() as i32 + dx, v.floor() as i32 + dy);
        let jitter = |n| 0.2 + 0.6 * random(cell.0, cell.1, seed + n);
        let way = [
            u - cell.0 as f32 - jitter(0),
            v - cell.1 as f32 - jitter(100),
        ];
        let size = 0.3 + 0.25 * random(cell.0, cell.1, seed + 200);
        let near = 1.0 - (way[0].hypot(way[1]) / size).min(1.0);
        if near > depth {
            depth = near;
            slope = way.map(|part| part / size * near);
        }
    }
    (depth, slope)
}

fn can(
    ray: Ray,
    [x, z]: [f32; 2],
    radius: f32,
    [bottom, top]: [f32; 2],
    coat: Coat,
    label: &Canvas,
) -> Option<Hit> {
    let from = [ray.from[0] - x, ray.from[2] - z];
    let toward = [ray.toward[0], ray.toward[2]];
    let (a, b) = (
        toward[0].powi(2) + toward[1].powi(2),
        from[0] * toward[0] + from[1] * toward[1],
    );
    let within = b * b - a * (from[0].powi(2) + from[1].powi(2) - radius * radius);
    if within <= 0.0 {
        return None;
    }
    let distance = (-b - within.sqrt()) / a;
    let at = place(ray, distance);
    if distance > 1e-4 && (bottom..top).contains(&at[1]) {
        let normal = [(at[0] - x) / radius, 0.0, (at[2] - z) / radius];
        let around = normal[0].atan2(-normal[2]);
        return Some(coated(
            distance,
            normal,
            around,
            at[1] - bottom,
            coat,
            label,
        ));
    }
    let distance = (top - ray.from[1]) / ray.toward[1];
    let at = place(ray, distance);
    let out = (at[0] - x).hypot(at[2] - z) / radius;
    let rim = if (0.86..0.93).contains(&out) {
        0.12
    } else {
        0.0
    };
    let normal = unit([rim * (at[0] - x), 1.0, rim * (at[2] - z)]);
    (distance > 1e-4 && out < 1.0).then(|| coated(distance, normal, 9.0, out, coat, label))
}

/// `around` is the angle from the side that faces the camera, 9 on a lid; `up` the height above the bottom.
fn coated(distance: f32, normal: Vector, around: f32, up: f32, coat: Coat, label: &Canvas) -> Hit {
    let hit = |color, gloss, roughness| Hit {
        distance,
        normal,
        color,
        gloss,
        roughness,
    };
    match coat {
        Coat::Glass(color) => hit(color, 0.06, 0.02),
        Coat::Metal => {
            let brushed = noise(around * 4.0, up * 160.0, 71);
            hit(times([0.5, 0.46, 0.38], 0.7 + 0.4 * brushed), 0.42, 0.14)
        }
        Coat::Label => {
            let (x, y) = (600.0 + around * 344.0, 760.0 - up * 396.0);
            let printed = label.at(x, y).map(|level| (level / 255.0).powf(2.2));
            let worn = 0.9 + 0.2 * clouds(x / 40.0, y / 60.0, 4, 72);
            hit(times(printed, worn), 0.04, 0.1)
        }
    }
}

/// The label, 344 pixels a radian and 396 a unit of height.
fn label() -> Canvas {
    let (green, cream, gold) = (
        [22.0, 62.0, 54.0],
        [236.0, 226.0, 200.0],
        [186.0, 148.0, 78.0],
    );
    let mut canvas = Canvas::new(1200, 760);
    canvas.fill(Area(0.0, 0.0, 1200.0, 760.0), green);
    for y in [34.0, 46.0, 700.0, 712.0] {
        canvas.fill(Area(0.0, y, 1200.0, y + 5.0), gold);
    }
    for n in 0..60 {
        let x = 20.0 * n as f32;
        canvas.lines(
            &[(x, 690.0), (x + 10.0, 672.0), (x + 20.0, 690.0)],
            3.0,
            gold,
        );
        canvas.lines(&[(x, 62.0), (x + 10.0, 80.0), (x + 20.0, 62.0)], 3.0, gold);
    }
    canvas.round(Area(318.0, 128.0, 882.0, 632.0), 40.0, gold);
    canvas.round(Area(326.0, 136.0, 874.0, 624.0), 34.0, cream);
    let ink = [40.0, 44.0, 52.0];
    for (text, x, y, height, width) in [
        ("HARBOUR", 372.0, 236.0, 62.0, 9.0),
        ("TEA AND SPICES", 374.0, 304.0, 36.0, 5.0),
        (
            "Smoked leaves from the north quay,",
            372.0,
            372.0,
            17.0,
            2.4,
        ),
        ("orange peel, cinnamon and clove.", 372.0, 404.0, 17.0, 2.4),
        (
            "Steep for 4 minutes at 95 degrees.",
            372.0,
            436.0,
            17.0,
            2.4,
        ),
        ("No. 27", 372.0, 536.0, 52.0, 7.0),
        ("250 g  best before 03.28", 372.0, 590.0, 20.0, 2.8),
    ] {
        write(
            &mut canvas,
            text,
            (x, y),
            Pen {
                height,
                width,
                color: ink,
            },
        );
    }
    canvas.fill(Area(372.0, 458.0, 828.0, 461.0), gold);
    for n in 0..8 {
        let angle = n as f32 * std::f32::consts::FRAC_PI_4;
        let (x, y) = (740.0 + 44.0 * angle.cos(), 520.0 + 44.0 * angle.sin());
        canvas.line((740.0, 520.0), (x, y), 6.0, [188.0, 84.0, 40.0]);
    }
    canvas.disc((740.0, 520.0), 20.0, [188.0, 84.0, 40.0]);
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_lit_from_the_left_and_is_the_same_each_time() {
        let picture = draw(48, 32, 6);
        assert!(picture.samples() == draw(48, 32, 6).samples());
        let mean = |columns: std::ops::Range<usize>| {
            let pixels = columns.flat_map(|x| (0..32).map(move |y| (x, y)));
            let levels = pixels.flat_map(|(x, y)| picture.pixel(x, y)).map(u32::from);
            levels.sum::<u32>()
        };
        // The tin's left side, which the window shines on, beside its right one.
        assert!(mean(3..6) > mean(16..19), "{} {}", mean(3..6), mean(16..19));
        // The first orange is one.
        let [red, green, blue] = picture.pixel(26, 19);
        assert!(red > green && green > blue, "{red} {green} {blue}");
    }

    #[test]
    fn the_label_can_be_read_all_around() {
        let label = label();
        let is_ink = |&(x, y): &(usize, usize)| label.at(x as f32, y as f32)[0] < 60.0;
        let line = (370..860).flat_map(|x| (180..240).map(move |y| (x, y)));
        assert!(line.filter(is_ink).count() > 2_000);
    }
}
