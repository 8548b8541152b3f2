//! What the address of the list of tasks asks for: state, scale, days, a text, and where the page begins.

use serde::Deserialize;
use upscale_core::Scale;
use upscale_store::{TaskCursor, TaskFilter, TaskSearch};
use url::form_urlencoded::Serializer;

use crate::pages::query::{Asked, Day, read};

/// Longest text that is looked for, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// `?state=&q=&scale=&from=&until=&after=`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TasksWanted {
    #[serde(deserialize_with = "read")]
    state: Option<TaskFilter>,
    q: String,
    #[serde(deserialize_with = "read")]
    scale: Option<Scale>,
    #[serde(deserialize_with = "read")]
    from: Option<Day>,
    #[serde(deserialize_with = "read")]
    until: Option<Day>,
    #[serde(deserialize_with = "read")]
    pub(crate) after: Option<TaskCursor>,
}

impl TasksWanted {
    /// Which tasks; all where none are asked for.
    pub(crate) fn filter(&self) -> TaskFilter {
        self.state.unwrap_or(TaskFilter::All)
    }

    /// What is looked for, as typed but for its ends.
    pub(crate) fn text(&self) -> String {
        self.q.trim().chars().take(TEXT_CHARS_MAX).collect()
    }

    /// Whether this scale alone is shown; none asks for the choice of all.
    pub(crate) fn is_scale(&self, factor: Option<usize>) -> bool {
        self.scale.map(Scale::factor) == factor
    }

    /// As date fields hold it.
    pub(crate) fn from(&self) -> String {
        self.from.map_or_else(String::new, Day::text)
    }

    /// As date fields hold it.
    pub(crate) fn until(&self) -> String {
        self.until.map_or_else(String::new, Day::text)
    }

    /// Whether anything but the state narrows the list.
    pub(crate) fn is_narrow(&self) -> bool {
        let days = self.from.is_some() || self.until.is_some();
        !self.text().is_empty() || self.scale.is_some() || days
    }

    pub(crate) fn search(&self) -> TaskSearch {
        let all = TaskSearch::default();
        TaskSearch {
            filter: self.filter(),
            scale: self.scale,
            days: (
                self.from.map_or(all.days.0, |day| day.0),
                self.until.map_or(all.days.1, |day| day.0),
            ),
            text: self.text(),
        }
    }

    /// Address of the list with the same wishes but for these.
    pub(crate) fn link(&self, changed: &[(&str, &str)]) -> String {
        let scale = self.scale.map(|scale| scale.factor().to_string());
        let now = [
            ("state", self.filter().as_str().to_owned()),
            ("q", self.text()),
            ("scale", scale.unwrap_or_default()),
            ("from", self.from()),
            ("until", self.until()),
        ];
        let mut query = Serializer::new(String::new());
        for (name, value) in &now {
            let is_changed = changed.iter().any(|(other, _)| other == name);
            if !is_changed && !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.extend_pairs(changed);
        format!("/tasks?{}", query.finish())
    }
}

impl Asked for Scale {
    fn parse(text: &str) -> Option<Self> {
        Self::from_factor(text.parse().ok()?)
    }
}
