//! How a result is to look: what the network draws where the source leaves several answers open.

use std::{fmt, str::FromStr};

use crate::condition::soft_share;
use crate::scale::Scale;

/// The look of a result. No parameter of an order: it is chosen for the whole service, or for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Look {
    /// The least square error: the mean of all that could be there, smooth where the source does not say.
    Faithful,
    /// Edges and textures as clear as people expect them at 100 %: preferred to `Faithful` (decision 38).
    #[default]
    Natural,
    /// Sharper, soft pictures most of all: for prints, and for photographs that are to look sharp.
    Crisp,
}

impl Look {
    /// All of them, the softest first.
    pub const ALL: [Self; 3] = [Self::Faithful, Self::Natural, Self::Crisp];

    /// Its name in flags, headers and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faithful => "faithful",
            Self::Natural => "natural",
            Self::Crisp => "crisp",
        }
    }

    /// Share of the crisper weights in its network, 0..1. They were asked for straight edges steeper than the original's, and
    /// draw strokes where texture was; at 4x more of them cost pairs from real cameras more likeness than [`Look::sharpening`]
    /// does. They were taught to leave pages alone: all of those at 2x take at most 0.1 dB of drawn ones.
    #[must_use]
    pub const fn crisp_share(self, scale: Scale) -> f32 {
        match (self, scale) {
            (Self::Faithful, _) => 0.0,
            (Self::Natural, Scale::X2) => 0.4,
            (Self::Crisp, Scale::X2) => 1.0,
            (Self::Natural, Scale::X4) => 0.3,
            (Self::Crisp, Scale::X4) => 0.6,
        }
    }

    /// How many times what is finest in a result is added to it once more, in a result `scale` times as large as a source that
    /// reads as soft as that, in its pixels (decision 44). At 2x, where letters behind noise would lose 1 dB, none is.
    #[must_use]
    pub fn sharpening(self, scale: usize, softness: f32) -> f32 {
        let [sharp, soft] = match (self, scale) {
            (Self::Natural, 4) => [0.1, 0.45],
            (Self::Crisp, 4) => [0.2, 0.9],
            _ => [0.0; 2],
        };
        sharp + (soft - sharp) * soft_share(softness)
    }

    /// Pixels of softness that its network is told beyond what a picture reads ([`crate::Condition::for_look`]). Told more, it
    /// sharpens more, at 4x for more of the likeness than [`Look::sharpening`] does.
    #[must_use]
    pub const fn added_softness(self, scale: Scale) -> f32 {
        match (self, scale) {
            (Self::Faithful, _) => 0.0,
            (Self::Natural, Scale::X2) => 0.08,
            (Self::Crisp, Scale::X2) => 0.16,
            (Self::Natural | Self::Crisp, Scale::X4) => 0.06,
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no look.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a look: expected faithful, natural or crisp")]
pub struct NotALook(pub String);

impl FromStr for Look {
    type Err = NotALook;

    fn from_str(text: &str) -> Result<Self, NotALook> {
        let found = Self::ALL.into_iter().find(|look| look.as_str() == text);
        found.ok_or_else(|| NotALook(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for look in Look::ALL {
            assert_eq!(look.to_string().parse(), Ok(look));
        }
        let error = "Crisp".parse::<Look>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"Crisp\" is not a look: expected faithful, natural or crisp"
        );
    }

    #[test]
    fn looks_go_from_the_softest_to_the_crispest() {
        for scale in Scale::ALL {
            let shares = Look::ALL.map(|look| look.crisp_share(scale));
            assert!(shares[0] == 0.0 && shares[2] <= 1.0, "{shares:?}");
            let added = Look::ALL.map(|look| look.added_softness(scale));
            assert!(added[0] == 0.0 && added.is_sorted());
            for softness in [0.0, 0.275, 1.0] {
                let crisper = Look::ALL.map(|look| {
                    let sharper = look.sharpening(scale.factor(), softness);
                    look.crisp_share(scale) + sharper
                });
                assert!(crisper.is_sorted_by(|one, next| one < next));
            }
        }
    }
}
