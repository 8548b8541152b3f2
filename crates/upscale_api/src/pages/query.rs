//! What the address of a page asks for after its `?`, as a type of each page. Addresses are typed, bookmarked and
//! shortened by people, so nothing in them is refused: a value that cannot be read counts as none, and of a name given
//! twice the first value counts. `axum::extract::Query` would answer both with a bare 400.

use std::{borrow::Cow, collections::BTreeMap, convert::Infallible};

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, value},
};
use time::{Date, format_description::StaticFormatDescription, macros::format_description};
use upscale_core::{AccountId, Id, KeyId, TaskId};
use upscale_store::{AccountCursor, KeyCursor, PaymentCursor, TaskCursor, TaskFilter};

use super::{listing::parse_cursor, shown::moment};

/// The query of a page; `T` has a field for each name that the page knows: text, or an option [`read`] as [`Asked`].
pub(crate) struct PageQuery<T>(pub(crate) T);

/// A value that a query may ask for.
pub(crate) trait Asked: Sized {
    /// None for anything that no link of ours holds.
    fn parse(text: &str) -> Option<Self>;
}

/// For `deserialize_with`: none where there is nothing that can be read.
pub(crate) fn read<'de, D: Deserializer<'de>, T: Asked>(field: D) -> Result<Option<T>, D::Error> {
    Ok(T::parse(&Cow::<str>::deserialize(field)?))
}

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequestParts<S> for PageQuery<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut values = BTreeMap::new();
        let query = parts.uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            values.entry(name).or_insert(value);
        }
        let fields = value::MapDeserializer::<_, value::Error>::new(values.into_iter());
        // Neither text nor an option that is read can fail.
        Ok(Self(T::deserialize(fields).unwrap_or_default()))
    }
}

/// `?done=`: what was just done, for a page's notice.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Done {
    pub(crate) done: String,
}

/// `?before=`: the lines of a list below this number.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Before {
    #[serde(deserialize_with = "read")]
    before: Option<i64>,
}

impl Before {
    /// The number, above all lines where none is asked for.
    pub(crate) fn line(&self) -> i64 {
        self.before.unwrap_or(i64::MAX)
    }
}

/// `?state=&after=`: which tasks of an account, from which on.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TasksOf {
    #[serde(deserialize_with = "read")]
    state: Option<TaskFilter>,
    #[serde(deserialize_with = "read")]
    pub(crate) after: Option<TaskCursor>,
}

impl TasksOf {
    /// Which tasks; all where none are asked for.
    pub(crate) fn filter(&self) -> TaskFilter {
        self.state.unwrap_or(TaskFilter::All)
    }
}

/// `?after=`: the keys of an account after this one.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeysAfter {
    #[serde(deserialize_with = "read")]
    pub(crate) after: Option<KeyCursor>,
}

/// A UTC day by its number since 1970, as date fields write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day(pub(crate) i64);

const DATE: StaticFormatDescription = format_description!("[year]-[month]-[day]");

impl Day {
    /// `2026-01-15`.
    pub(crate) fn text(self) -> String {
        let at = moment(self.0.saturating_mul(86_400));
        at.format(DATE).unwrap_or_default()
    }
}

impl Asked for Day {
    fn parse(text: &str) -> Option<Self> {
        let date = Date::parse(text, DATE).ok()?;
        Some(Self((date - moment(0).date()).whole_days()))
    }
}

impl<const PREFIX: u32> Asked for Id<PREFIX> {
    fn parse(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl Asked for i64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Asked for TaskFilter {
    fn parse(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl Asked for TaskCursor {
    fn parse(text: &str) -> Option<Self> {
        let (created_at, id) = parse_cursor(text, TaskId::parse)?;
        Some(Self { created_at, id })
    }
}

impl Asked for AccountCursor {
    fn parse(text: &str) -> Option<Self> {
        let (created_at, id) = parse_cursor(text, AccountId::parse)?;
        Some(Self { created_at, id })
    }
}

impl Asked for KeyCursor {
    fn parse(text: &str) -> Option<Self> {
        let (is_live, rest) = match text.split_once('-')? {
            ("live", rest) => (true, rest),
            ("revoked", rest) => (false, rest),
            _ => return None,
        };
        let (created_at, id) = parse_cursor(rest, KeyId::parse)?;
        Some(Self {
            is_live,
            created_at,
            id,
        })
    }
}

impl Asked for PaymentCursor {
    fn parse(text: &str) -> Option<Self> {
        let (first_at, id) = parse_cursor(text, |id| Some(id.to_owned()))?;
        Some(Self { first_at, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_reads_back_and_nothing_else_is_one() {
        for text in ["1970-01-01", "2026-01-15", "2028-02-29"] {
            assert_eq!(Day::parse(text).map(Day::text).as_deref(), Some(text));
        }
        assert_eq!(Day::parse("2026-01-15"), Some(Day(20_468)));
        for wrong in ["", "2026-02-29", "15.1.2026", "2026-1-5", "99999-01-01"] {
            assert_eq!(Day::parse(wrong), None, "{wrong}");
        }
    }
}
