//! The faults that the check of a result finds.

/// What is wrong with a result. Positions are source pixels.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckFailure {
    /// NaN or an infinity.
    #[error("a sample of result row {row} is {value}")]
    NotFinite {
        /// Row of the result.
        row: usize,
        /// The sample.
        value: f32,
    },
    /// Flat where the source is not.
    #[error(
        "the result is flat around ({x}, {y}): deviation {found:.4}, the source's is {source_deviation:.4}"
    )]
    Flat {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Standard deviation of the shrunk result.
        found: f64,
        /// Standard deviation of the source.
        source_deviation: f64,
    },
    /// Another picture in that place.
    #[error(
        "the result is not the source around ({x}, {y}): error {error:.4}, at most {error_max:.4}"
    )]
    Differs {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Error found, `[0, 1]`.
        error: f64,
        /// Error allowed.
        error_max: f64,
    },
    /// The right picture in the wrong place.
    #[error(
        "the result is shifted by ({dx}, {dy}) around ({x}, {y}): error {error:.4} here, {shifted_error:.4} there"
    )]
    Shifted {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Source pixels to the right.
        dx: i32,
        /// Source pixels down.
        dy: i32,
        /// Error where it stands.
        error: f64,
        /// Error where it would fit.
        shifted_error: f64,
    },
    /// Other colours over the whole picture.
    #[error("the colours moved by {delta_e:.2} ΔE2000 on average, at most {delta_e_max:.2}")]
    Colours {
        /// Mean over the squares.
        delta_e: f64,
        /// Largest mean that is allowed, in ΔE2000.
        delta_e_max: f64,
    },
    /// Red, green and blue in another order.
    #[error(
        "two channels are swapped: error {error:.4} as they are, {swapped_error:.4} the other way"
    )]
    Swapped {
        /// Root mean square difference of cells.
        error: f64,
        /// The same with the channels swapped back.
        swapped_error: f64,
    },
    /// Too far from the source as a whole.
    #[error("the result, shrunk, is {psnr:.1} dB from the source, at least {psnr_min:.1}")]
    Noisy {
        /// Found, dB.
        psnr: f64,
        /// Needed, dB.
        psnr_min: f64,
    },
}
