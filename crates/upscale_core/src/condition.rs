//! What is known of how a picture was compressed before it came here. The image room finds it out, the networks
//! are set by it ([`Condition::vector`] is what they were trained with).

/// How a picture was compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// Nothing that could be trusted.
    Unknown,
    /// Losslessly, and nothing says that it was lossy before.
    Clean,
    /// By a block transform whose coefficients were rounded to multiples of a table's entries.
    Quantised {
        /// Mean of the 64 entries of luma's table, ≥ 1.
        luma_mean: f32,
        /// The same of chroma's; luma's where the picture is gray.
        chroma_mean: f32,
        /// How much smaller chroma was stored.
        subsampling: Subsampling,
    },
}

/// How much smaller than luma chroma was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsampling {
    /// As large (4:4:4), or there is none.
    None,
    /// Half the samples (4:2:2, 4:4:0).
    Half,
    /// A quarter of them (4:2:0), or fewer.
    Quarter,
}

impl Condition {
    /// What the networks read: known?, luma, chroma, sub-sampled; each in `[0, 1]`, all 0 when unknown. A table's
    /// mean `m` becomes `log2(1 + m) / 8`: 0.125 for the finest, 1 for a mean of 255.
    #[must_use]
    pub fn vector(self) -> [f32; 4] {
        match self {
            Self::Unknown => [0.0; 4],
            Self::Clean => [1.0, 0.0, 0.0, 0.0],
            Self::Quantised {
                luma_mean,
                chroma_mean,
                subsampling,
            } => [
                1.0,
                level(luma_mean),
                level(chroma_mean),
                subsampling.level(),
            ],
        }
    }
}

fn level(table_mean: f32) -> f32 {
    ((1.0 + table_mean.max(0.0)).log2() / 8.0).clamp(0.0, 1.0)
}

impl Subsampling {
    fn level(self) -> f32 {
        match self {
            Self::None => 0.0,
            Self::Half => 0.5,
            Self::Quarter => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_is_the_one_that_training_uses() {
        assert_eq!(Condition::Unknown.vector(), [0.0; 4]);
        assert_eq!(Condition::Clean.vector(), [1.0, 0.0, 0.0, 0.0]);
        let coarse = Condition::Quantised {
            luma_mean: 63.0,
            chroma_mean: 300.0,
            subsampling: Subsampling::Quarter,
        };
        assert_eq!(coarse.vector(), [1.0, 0.75, 1.0, 1.0]);
        let finest = Condition::Quantised {
            luma_mean: 1.0,
            chroma_mean: 3.0,
            subsampling: Subsampling::Half,
        };
        assert_eq!(finest.vector(), [1.0, 0.125, 0.25, 0.5]);
    }
}
