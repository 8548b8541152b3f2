//! Values of the domain as operators see them: exact amounts, times as RFC 3339.

use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};
use serde_json::value::RawValue;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use upscale_core::{Credits, Parameters, Timestamp};

/// Credits as an exact JSON number such as 0.7, never through a float.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount(pub(crate) Credits);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?;
        number.serialize(serializer)
    }
}

/// The fields of an order's parameters, by the API's names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedParameters(pub(crate) Parameters);

impl Serialize for OrderedParameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, json) in self.0.fields() {
            let value = RawValue::from_string(json).map_err(S::Error::custom)?;
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// To the second, in UTC; empty for times beyond the year 9999.
pub(crate) fn time(at: Timestamp) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(at.unix_seconds()).ok();
    moment
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// As [`time`], where there is one.
pub(crate) fn time_if_any(at: Option<Timestamp>) -> Option<String> {
    at.map(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_json_numbers_and_times_are_utc() {
        let price = Amount(upscale_core::limits::PRICE);
        assert_eq!(serde_json::to_string(&price).unwrap(), "0.7");
        assert_eq!(
            time(Timestamp::from_micros(1_000_000_000_999_999)),
            "2001-09-09T01:46:40Z"
        );
    }
}
