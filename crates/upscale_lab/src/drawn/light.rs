//! Light as a camera catches it: paths from the lens through the scene to a window (path tracing, Kajiya 1986). The lens has
//! an opening, so that one distance is sharp and the others are not. What stands in the scene is told by the caller.

/// A place, a direction, or linear light in red, green and blue.
pub(super) type Vector = [f32; 3];

/// From a place in a direction of length one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ray {
    pub(super) from: Vector,
    pub(super) toward: Vector,
}

/// What a ray meets first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// Along the ray, above zero.
    pub(super) distance: f32,
    /// Of length one, outward.
    pub(super) normal: Vector,
    /// Share of the light that it scatters.
    pub(super) color: Vector,
    /// Share that it mirrors, seen from straight above; 0 where it has no gloss at all.
    pub(super) gloss: f32,
    /// How far a mirrored ray strays.
    pub(super) roughness: f32,
}

/// A window: the one thing that shines, a rectangle by a corner and two edges.
struct Window {
    corner: Vector,
    across: Vector,
    up: Vector,
    light: Vector,
}

const WINDOW: Window = Window {
    corner: [-6.5, 1.6, -3.6],
    across: [0.0, 0.0, 5.2],
    up: [1.2, 4.2, 0.0],
    light: [19.0, 17.6, 15.2],
};
/// From everywhere else in the room.
const ROOM: Vector = [0.17, 0.19, 0.24];
/// Surfaces that a path meets at most.
const BOUNCES: u32 = 4;
/// A ray starts this far from the surface that it leaves.
const CLEAR: f32 = 1e-3;

/// Where the photographer stands.
pub(super) struct Camera {
    pub(super) at: Vector,
    pub(super) looks_at: Vector,
    /// Half of the picture's width, at distance one.
    pub(super) half_width: f32,
    /// Radius of the lens.
    pub(super) lens: f32,
    /// What is this far away is sharp.
    pub(super) focus: f32,
}

impl Camera {
    /// Through a place of the picture: -1 to 1 across, the same unit downward.
    pub(super) fn ray(&self, x: f32, y: f32, dice: &mut Dice) -> Ray {
        let forward = unit(minus(self.looks_at, self.at));
        let right = unit(cross([0.0, 1.0, 0.0], forward));
        let up = cross(forward, right);
        let turned =
            |x: f32, y: f32, z: f32| plus(plus(times(right, x), times(up, y)), times(forward, z));
        let (radius, angle) = (
            self.lens * dice.roll().sqrt(),
            dice.roll() * std::f32::consts::TAU,
        );
        let from = plus(
            self.at,
            turned(radius * angle.cos(), radius * angle.sin(), 0.0),
        );
        let sharp = turned(x * self.half_width, -y * self.half_width, 1.0);
        let toward = unit(minus(plus(self.at, times(sharp, self.focus)), from));
        Ray { from, toward }
    }
}

/// Random numbers in 0..1, the same on every machine (PCG, O'Neill 2014, 32 bits of state).
pub(super) struct Dice(pub(super) u32);

impl Dice {
    pub(super) fn roll(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((self.0 >> ((self.0 >> 28) + 4)) ^ self.0).wrapping_mul(277_803_737);
        (((word >> 22) ^ word) >> 8) as f32 / 16_777_216.0
    }

    /// Evenly over all directions.
    fn direction(&mut self) -> Vector {
        let (height, angle) = (2.0 * self.roll() - 1.0, self.roll() * std::f32::consts::TAU);
        let flat = (1.0 - height * height).max(0.0).sqrt();
        [flat * angle.cos(), height, flat * angle.sin()]
    }
}

/// The light that comes along a ray against its direction.
pub(super) fn seen(mut ray: Ray, find: &impl Fn(Ray) -> Option<Hit>, dice: &mut Dice) -> Vector {
    let (mut light, mut share) = ([0.0; 3], [1.0; 3]);
    // The window is asked for its light at every surface that scatters: seeing it again afterwards would count it twice.
    let (mut may_see_window, mut has_scattered) = (false, false);
    for _ in 0..BOUNCES {
        let found = find(ray);
        if may_see_window
            && let Some(distance) = WINDOW.meets(ray)
            && found.is_none_or(|hit| hit.distance > distance)
        {
            return plus(light, product(share, WINDOW.light));
        }
        let Some(hit) = found else {
            return plus(light, product(share, ROOM));
        };
        let at = plus(
            plus(ray.from, times(ray.toward, hit.distance)),
            times(hit.normal, CLEAR),
        );
        let slant = 1.0 + dot(ray.toward, hit.normal).clamp(-1.0, 0.0);
        // Schlick's approximation of Fresnel's law.
        let mirrored = match hit.gloss > 0.0 {
            true => hit.gloss + (1.0 - hit.gloss) * (1.0 - hit.roughness) * slant.powi(5),
            false => 0.0,
        };
        let toward = if dice.roll() < mirrored {
            may_see_window = !has_scattered;
            let back = times(hit.normal, -2.0 * dot(ray.toward, hit.normal));
            plus(
                plus(ray.toward, back),
                times(dice.direction(), hit.roughness),
            )
        } else {
            (may_see_window, has_scattered) = (false, true);
            share = product(share, hit.color);
            light = plus(
                light,
                product(share, WINDOW.shines_on(at, hit.normal, find, dice)),
            );
            plus(hit.normal, dice.direction())
        };
        ray = Ray {
            from: at,
            toward: unit(toward),
        };
    }
    light
}

impl Window {
    /// How far away along the ray.
    fn meets(&self, ray: Ray) -> Option<f32> {
        let normal = cross(self.across, self.up);
        let distance = dot(minus(self.corner, ray.from), normal) / dot(ray.toward, normal);
        let at = minus(plus(ray.from, times(ray.toward, distance)), self.corner);
        let is_within = |edge: Vector| (0.0..=dot(edge, edge)).contains(&dot(at, edge));
        (distance > 0.0 && is_within(self.across) && is_within(self.up)).then_some(distance)
    }

    /// From one place of it, which stands for all of it.
    fn shines_on(
        &self,
        at: Vector,
        normal: Vector,
        find: &impl Fn(Ray) -> Option<Hit>,
        dice: &mut Dice,
    ) -> Vector {
        let place = plus(times(self.across, dice.roll()), times(self.up, dice.roll()));
        let way = minus(plus(self.corner, place), at);
        let distance = dot(way, way).sqrt();
        let toward = times(way, 1.0 / distance);
        let face = cross(self.across, self.up);
        let seen_from_there = dot(face, toward).abs();
        let upright = dot(normal, toward);
        let ray = Ray { from: at, toward };
        if upright <= 0.0 || find(ray).is_some_and(|hit| hit.distance < distance) {
            return [0.0; 3];
        }
        let share = upright * seen_from_there / (distance * distance * std::f32::consts::PI);
        times(self.light, share)
    }
}

pub(super) fn plus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i] + b[i])
}

pub(super) fn minus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(super) fn times(a: Vector, factor: f32) -> Vector {
    a.map(|value| value * factor)
}

fn product(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i] * b[i])
}

pub(super) fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

pub(super) fn unit(a: Vector) -> Vector {
    times(a, 1.0 / dot(a, a).sqrt().max(1e-9))
}
