//! Lists that go on over several pages: one record more than a page shows is asked for, and the link to the next page says
//! where it begins.

use std::fmt::Display;

use upscale_core::Timestamp;
use upscale_store::KeyCursor;

/// The records of one page.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    has_older: bool,
}

/// How many records to ask for, for a page of `size`.
pub(crate) const fn asked_for(size: usize) -> u32 {
    size as u32 + 1
}

impl<T> Page<T> {
    /// Of what was found, up to [`asked_for`] records.
    pub(crate) fn of(mut found: Vec<T>, size: usize) -> Self {
        let has_older = found.len() > size;
        found.truncate(size);
        Self {
            items: found,
            has_older,
        }
    }

    /// Whether more were found than the page shows.
    pub(crate) fn is_cut(&self) -> bool {
        self.has_older
    }

    /// What the last record says of where the next page begins, if there is one.
    pub(crate) fn older<C>(&self, cursor: impl FnOnce(&T) -> C) -> Option<C> {
        self.items.last().filter(|_| self.has_older).map(cursor)
    }
}

/// A moment and what tells records of one moment apart, as a link has them.
pub(crate) fn cursor(at: Timestamp, id: impl Display) -> String {
    format!("{}-{id}", at.micros())
}

/// The same of a key, whose list has two parts.
pub(crate) fn key_cursor(after: &KeyCursor) -> String {
    let part = if after.is_live { "live" } else { "revoked" };
    format!("{part}-{}", cursor(after.created_at, after.id))
}

/// None for anything that [`cursor`] cannot have written.
pub(crate) fn parse_cursor<I>(
    text: &str,
    parse_id: impl FnOnce(&str) -> Option<I>,
) -> Option<(Timestamp, I)> {
    let (micros, id) = text.split_once('-')?;
    let at = Timestamp::from_micros(micros.parse().ok()?);
    Some((at, parse_id(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_whether_another_follows_and_where_it_begins() {
        let last = |found: u32| {
            let page = Page::of((0..found).collect(), 3);
            assert_eq!(page.is_cut(), page.older(|_| ()).is_some());
            (page.items.len(), page.older(|last| *last))
        };
        assert_eq!(asked_for(3), 4);
        assert_eq!(
            [0, 2, 3, 4].map(last),
            [(0, None), (2, None), (3, None), (3, Some(2))]
        );
    }

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let at = Timestamp::from_micros(7);
        let parse = |text: &str| parse_cursor(text, |id| id.parse::<u8>().ok());
        assert_eq!(parse(&cursor(at, 9)), Some((at, 9)));
        for wrong in ["", "7", "-9", "x-9", "7-x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
