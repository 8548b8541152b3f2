//! What a customer may ask for beside the image itself, as one value that every hop carries whole. A field is
//! spelled here, by the row, by the child's frame and by what shows or takes JSON; elsewhere only where it changes
//! what is done.

use std::fmt;

use crate::{InvalidRequest, Scale};

/// The parameters of an order, after defaults. `output_format` is always png and so is not a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Factor of enlargement.
    pub scale: Scale,
    /// Whether faces are improved, with the smaller size caps.
    pub face_enhance: bool,
}

impl Parameters {
    /// At this scale, everything else as it is when a request does not name it.
    #[must_use]
    pub const fn at(scale: Scale) -> Self {
        Self {
            scale,
            face_enhance: false,
        }
    }

    /// From the JSON text that `find` has for a name, where it has one; what is left out has its default.
    ///
    /// # Errors
    /// The first field that is wrong, in the contract's order.
    pub fn parse<'a>(find: impl Fn(&str) -> Option<&'a str>) -> Result<Self, InvalidRequest> {
        let default = Self::default();
        Ok(Self {
            scale: find("scale").map_or(Ok(default.scale), parse_scale)?,
            face_enhance: find("face_enhance").map_or(Ok(default.face_enhance), |text| {
                text.parse().map_err(|_| InvalidRequest::FaceEnhance)
            })?,
        })
    }

    /// Names and JSON texts, in the contract's order: what [`Parameters::parse`] reads back.
    #[must_use]
    pub fn fields(self) -> [(&'static str, String); 2] {
        [
            ("scale", self.scale.factor().to_string()),
            ("face_enhance", self.face_enhance.to_string()),
        ]
    }

    /// The lines of the fingerprint. A parameter that comes later adds its line only where it is not at its default:
    /// a request that was sent before must keep its fingerprint for as long as its key lives.
    pub(crate) fn fingerprint_lines(self) -> String {
        format!(
            "scale={}\nface_enhance={}\n",
            self.scale.factor(),
            self.face_enhance
        )
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self::at(Scale::X2)
    }
}

/// For people: `2x`, `4x, faces`.
impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faces = if self.face_enhance { ", faces" } else { "" };
        write!(f, "{}{faces}", self.scale)
    }
}

/// Any spelling of the number 2 or 4 (`2.0`, `0.4e1`): JSON knows numbers, not integers. A double is
/// what every JSON implementation reads a number as (RFC 7493).
fn parse_scale(text: &str) -> Result<Scale, InvalidRequest> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let factor = match text.parse::<f64>() {
        Ok(2.0) if is_number => 2,
        Ok(4.0) if is_number => 4,
        _ => return Err(InvalidRequest::Scale),
    };
    Scale::from_factor(factor).ok_or(InvalidRequest::Scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_as_json_reads_back_as_it_was() {
        for scale in Scale::ALL {
            for face_enhance in [false, true] {
                let given = Parameters {
                    scale,
                    face_enhance,
                };
                let fields = given.fields();
                let find = |name: &str| {
                    let field = fields.iter().find(|(known, _)| *known == name);
                    field.map(|(_, text)| text.as_str())
                };
                assert_eq!(Parameters::parse(find), Ok(given));
            }
        }
        assert_eq!(Parameters::parse(|_| None), Ok(Parameters::at(Scale::X2)));
    }

    #[test]
    fn each_wrong_field_has_its_own_code() {
        for (name, _) in Parameters::default().fields() {
            let wrong = Parameters::parse(|asked| (asked == name).then_some("null"));
            assert_eq!(wrong.unwrap_err().code(), format!("invalid_{name}"));
        }
    }

    #[test]
    fn people_read_the_scale_and_what_else_was_asked_for() {
        let faces = Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        };
        assert_eq!(faces.to_string(), "4x, faces");
        assert_eq!(Parameters::default().to_string(), "2x");
    }
}
