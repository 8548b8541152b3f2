//! The sample pictures that every service offers: a URL that names one is known here, with the picture's bytes. The
//! host is a documentation name (RFC 2606) that cannot be registered and no resolver knows, so such a URL means this
//! picture or nothing. It is an ordinary source URL everywhere else: the download guard never hears of it.

use crate::SourceUrl;

/// Scheme and host of every sample's URL.
const BASE: &str = "https://samples.upscale.example.com/";

/// A picture that can be ordered without an image host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The last part of its URL, such as `harbour.png`.
    pub file_name: &'static str,
    /// What it shows, for people.
    pub title: &'static str,
    /// Columns and rows, in pixels.
    pub size: (u32, u32),
    /// The PNG file. Drawn for this project by `upscale-lab samples`.
    pub bytes: &'static [u8],
}

/// All of them, in the order pages show them.
pub const SAMPLES: [Sample; 2] = [
    Sample {
        file_name: "harbour.png",
        title: "Harbour",
        size: (360, 240),
        bytes: include_bytes!("samples/harbour.png"),
    },
    Sample {
        file_name: "panel.png",
        title: "Dashboard with small text",
        size: (360, 240),
        bytes: include_bytes!("samples/panel.png"),
    },
];

impl Sample {
    /// The URL that an order names.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{BASE}{}", self.file_name)
    }

    /// The one that this source names, byte for byte; none for every other URL.
    #[must_use]
    pub fn of(source: &SourceUrl) -> Option<&'static Self> {
        Self::named(source.as_str().strip_prefix(BASE)?)
    }

    /// The one of this file name.
    #[must_use]
    pub fn named(file_name: &str) -> Option<&'static Self> {
        SAMPLES.iter().find(|sample| sample.file_name == file_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameters, Scale, limits::source_pixels_max};

    #[test]
    fn every_sample_has_a_url_that_an_order_may_name_and_fits_every_order() {
        for sample in &SAMPLES {
            let source = SourceUrl::parse(&sample.url()).unwrap();
            assert_eq!(Sample::of(&source), Some(sample));
            // IHDR: the size that pages promise is the file's.
            let side = |at: usize| u32::from_be_bytes(sample.bytes[at..at + 4].try_into().unwrap());
            assert_eq!((side(16), side(20)), sample.size);
            let pixels = u64::from(sample.size.0) * u64::from(sample.size.1);
            for scale in Scale::ALL {
                let faces = Parameters {
                    face_enhance: true,
                    ..Parameters::at(scale)
                };
                assert!(pixels <= source_pixels_max(faces));
            }
        }
    }

    #[test]
    fn nothing_but_the_very_url_is_a_sample() {
        for other in [
            "https://samples.upscale.example.com/harbour.png?x=1",
            "https://samples.upscale.example.com/other.png",
            "https://samples.upscale.example.com/../harbour.png",
            "https://SAMPLES.upscale.example.com/harbour.png",
            "https://example.com/harbour.png",
        ] {
            let source = SourceUrl::parse(other);
            assert!(
                source.is_err() || Sample::of(&source.unwrap()).is_none(),
                "{other}"
            );
        }
    }
}
