//! Takes back a colour cast of the decoder's: `zune-jpeg` doubles sub-sampled chroma by one pass a direction, each
//! `(3 a + b + 2) >> 2`. That rounds up by an eighth of a level on average wherever `a` and `b` differ: photographs
//! came out 0.15 to 0.22 levels too high in Cb and Cr, which is 0.2 ΔE2000 of magenta.

/// What one pass adds on average: of the remainders of 4, 1 comes out 0.25 too low, 2 and 3 come out 0.5 and 0.25 too
/// high, 0 exact.
const ROUNDING_BIAS: f32 = 0.125;

/// In which directions chroma was doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubled {
    pub(super) across: bool,
    pub(super) down: bool,
}

impl Doubled {
    /// From the sampling factors (`h << 4 | v`) of the components.
    pub(super) fn of(specs: &[[u8; 3]]) -> Self {
        let factors = |spec: &[u8; 3]| (spec[1] >> 4, spec[1] & 0x0f);
        let luma = specs.first().map_or((1, 1), factors);
        let chroma = specs.get(1).map_or((1, 1), factors);
        Self {
            across: luma.0 == 2 * chroma.0,
            down: luma.1 == 2 * chroma.1,
        }
    }

    /// How much too high the chroma sample (`channel` 1 or 2 of 3) of pixel `(x, y)` is on average, in levels.
    pub(super) fn excess(
        self,
        data: &[u8],
        width: usize,
        x: usize,
        y: usize,
        channel: usize,
    ) -> f32 {
        let at = |x: usize, y: usize| data.get((y * width + x) * 3 + channel);
        let own = at(x, y);
        let differs = |other: Option<&u8>| other.is_some() && other != own;
        let mut excess = 0.0;
        if self.across && partner(x).is_some_and(|x| x < width && differs(at(x, y))) {
            excess += ROUNDING_BIAS;
        }
        if self.down && partner(y).is_some_and(|y| differs(at(x, y))) {
            excess += ROUNDING_BIAS;
        }
        excess
    }
}

/// The sample made from the same two: 1 and 2, 3 and 4 and so on; the first has none.
fn partner(position: usize) -> Option<usize> {
    if position % 2 == 1 {
        Some(position + 1)
    } else {
        position.checked_sub(1)
    }
}
