//! What the networks must reach before they ship, held against the means of every set.

use upscale_core::Scale;

use super::{ConditionInput, Input, Method, Score, sets};

/// Over bicubic at 4x, in dB, on JPEGs of quality 75 and less.
const JPEG_GAIN_MIN: f64 = 0.9;
/// Over bicubic at 2x, in dB, on text and screenshots.
const TEXT_GAIN_MIN: f64 = 3.0;

/// Means that differ by less are the same, in dB.
const EQUAL: f64 = 0.02;

/// A figure and what it must be at least.
pub(crate) struct Gate {
    pub(crate) set: String,
    pub(crate) what: String,
    pub(crate) found: f64,
    pub(crate) least: f64,
}

impl Gate {
    pub(crate) fn is_met(&self) -> bool {
        self.found >= self.least
    }

    /// Set, gate, found, needed, met or missed.
    pub(crate) fn cells(&self) -> [String; 5] {
        let number = |value: f64| format!("{value:+.3}");
        let met = if self.is_met() { "met" } else { "MISSED" };
        let (found, least) = (number(self.found), number(self.least));
        [
            self.set.clone(),
            self.what.clone(),
            found,
            least,
            met.to_owned(),
        ]
    }
}

/// All gates that the means have figures for.
pub(crate) fn gates(means: &[Score]) -> Vec<Gate> {
    let ours = |mean: &&Score| mean.method == Method::Ours(ConditionInput::Matched);
    means
        .iter()
        .filter(ours)
        .flat_map(|mean| {
            let found = |method| find(means, mean, method);
            let bicubic = found(Method::Bicubic);
            let unknown = found(Method::Ours(ConditionInput::Unknown));
            let mismatched = found(Method::Ours(ConditionInput::Mismatched));
            let mut gates = Vec::new();
            if let (Some(bicubic), Some(unknown), Some(mismatched)) = (bicubic, unknown, mismatched)
            {
                gates.extend(condition_gates(mean, bicubic, unknown, mismatched));
            }
            gates.extend(bicubic.into_iter().flat_map(|bicubic| gains(mean, bicubic)));
            gates
        })
        .collect()
}

/// The mean of the same set, scale and input by another method.
pub(super) fn find<'a>(means: &'a [Score], like: &Score, method: Method) -> Option<&'a Score> {
    means.iter().find(|mean| {
        (&mean.set, mean.scale, mean.input, mean.method)
            == (&like.set, like.scale, like.input, method)
    })
}

/// Knowing the file must help, knowing nothing or something wrong must not hurt.
fn condition_gates(
    matched: &Score,
    bicubic: &Score,
    unknown: &Score,
    mismatched: &Score,
) -> [Gate; 3] {
    [
        gate(
            matched,
            "matched over unknown",
            matched.psnr - unknown.psnr,
            -EQUAL,
        ),
        gate(
            matched,
            "unknown over bicubic",
            unknown.psnr - bicubic.psnr,
            0.0,
        ),
        gate(
            matched,
            "mismatched over bicubic",
            mismatched.psnr - bicubic.psnr,
            0.0,
        ),
    ]
}

fn gains(ours: &Score, bicubic: &Score) -> Vec<Gate> {
    let gain = ours.psnr - bicubic.psnr;
    let mut gates = Vec::new();
    let is_coarse = matches!(ours.input, Input::Jpeg(quality) if quality <= 75);
    if is_coarse && ours.scale == Scale::X4.factor() {
        gates.push(gate(ours, "over bicubic, dB", gain, JPEG_GAIN_MIN));
    }
    let is_text = [sets::TEXT, sets::SCREEN].contains(&ours.set.as_str());
    if is_text && ours.input == Input::Clean && ours.scale == Scale::X2.factor() {
        gates.push(gate(ours, "over bicubic, dB", gain, TEXT_GAIN_MIN));
    }
    if is_text && ours.input == Input::Clean {
        let colour = bicubic.colour - ours.colour;
        gates.push(gate(
            ours,
            "colours nearer than bicubic's, levels",
            colour,
            0.0,
        ));
    }
    if let (Some(ours_overlap), Some(overlap)) = (ours.overlap, bicubic.overlap) {
        let more = ours_overlap - overlap;
        gates.push(gate(ours, "strokes' overlap over bicubic's", more, 0.0));
    }
    gates
}

fn gate(of: &Score, what: &str, found: f64, least: f64) -> Gate {
    Gate {
        set: of.set.clone(),
        what: format!("{}x, {}: {what}", of.scale, of.input.name()),
        found,
        least,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(method: Method, psnr: f64) -> Score {
        Score {
            set: sets::TEXT.to_owned(),
            picture: None,
            scale: 4,
            input: Input::Jpeg(50),
            method,
            psnr,
            ssim: 0.9,
            colour: 1.0,
            overlap: Some(psnr / 100.0),
        }
    }

    #[test]
    fn each_broken_promise_is_a_missed_gate() {
        let means = [
            score(Method::Bicubic, 26.0),
            score(Method::Ours(ConditionInput::Matched), 26.5),
            score(Method::Ours(ConditionInput::Unknown), 26.6),
            score(Method::Ours(ConditionInput::Mismatched), 25.9),
        ];
        let missed: Vec<String> = gates(&means)
            .into_iter()
            .filter(|gate| !gate.is_met())
            .map(|gate| gate.what)
            .collect();
        let expected = [
            "matched over unknown",
            "mismatched over bicubic",
            "over bicubic, dB",
        ];
        let expected = expected.map(|what| format!("4x, JPEG 50: {what}"));
        assert_eq!(missed, expected);
        assert_eq!(gates(&means).len(), 5);
    }
}
