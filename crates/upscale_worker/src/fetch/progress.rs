//! Where a download stands, for who is told that it was cut.

use std::sync::{Mutex, PoisonError};

/// One download, seen from outside while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Standing>);

/// What it is at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Standing {
    #[default]
    LookingUp,
    /// As many downloads from the source's address as may be were under way.
    WaitingForPermit,
    Asking,
    /// Bytes that arrived, and how many were announced.
    Receiving(u64, Option<u64>),
}

impl Progress {
    pub(super) fn is_at(&self, standing: Standing) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// For the customer, after a colon.
    pub(crate) fn words(&self) -> String {
        let standing = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing {
            Standing::LookingUp => "it was resolving the image host".to_owned(),
            Standing::WaitingForPermit => {
                "it was waiting to download from the image host".to_owned()
            }
            Standing::Asking => "the image host had not responded".to_owned(),
            Standing::Receiving(bytes, Some(of)) => {
                format!("{bytes} of {of} bytes had been downloaded")
            }
            Standing::Receiving(bytes, None) => format!("{bytes} bytes had been downloaded"),
        }
    }
}
