//! Columns of a row, by name, each into the word of core that it holds. A value that cannot be what its column says is a
//! corrupt store, said with the column.

use upscale_core::{AccountId, Credits, OwnLimits, TaskId, Timestamp};

use crate::StoreError;

/// A row as a driver has it.
pub(crate) trait Row {
    /// A number; a flag is 0 or 1.
    fn number_if_any(&self, column: &str) -> Result<Option<i64>, StoreError>;
    fn text_if_any(&self, column: &str) -> Result<Option<&str>, StoreError>;
    /// The first column, whatever it is called.
    fn first_number(&self) -> Result<i64, StoreError>;
}

impl dyn Row + '_ {
    pub(crate) fn number(&self, column: &str) -> Result<i64, StoreError> {
        required(column, self.number_if_any(column)?)
    }

    pub(crate) fn text(&self, column: &str) -> Result<&str, StoreError> {
        required(column, self.text_if_any(column)?)
    }

    pub(crate) fn string(&self, column: &str) -> Result<String, StoreError> {
        Ok(self.text(column)?.to_owned())
    }

    pub(crate) fn string_if_any(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.text_if_any(column)?.map(str::to_owned))
    }

    pub(crate) fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    /// A count or size, which no row may hold below zero.
    pub(crate) fn whole<T: TryFrom<i64>>(&self, column: &str) -> Result<T, StoreError> {
        whole(column, self.number(column)?)
    }

    /// The same, where it may be null.
    pub(crate) fn count_if_any(&self, column: &str) -> Result<Option<u32>, StoreError> {
        let number = self.number_if_any(column)?;
        number.map(|number| whole(column, number)).transpose()
    }

    pub(crate) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_micros(self.number(column)?))
    }

    pub(crate) fn time_if_any(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.number_if_any(column)?.map(Timestamp::from_micros))
    }

    pub(crate) fn credits(&self, column: &str) -> Result<Credits, StoreError> {
        Ok(Credits::from_thousandths(self.number(column)?))
    }

    /// A text column through a parser of core.
    pub(crate) fn parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.text(column)?;
        parse(text).ok_or_else(|| StoreError::Corrupt(format!("column {column} holds {text:?}")))
    }

    pub(crate) fn account_id(&self) -> Result<AccountId, StoreError> {
        self.parsed("account_id", AccountId::parse)
    }

    pub(crate) fn task_id(&self, column: &str) -> Result<TaskId, StoreError> {
        self.parsed(column, TaskId::parse)
    }

    /// What an operator set for an account; null where nothing was set.
    pub(crate) fn own_limits(&self) -> Result<OwnLimits, StoreError> {
        Ok(OwnLimits {
            create_requests_per_minute: self.count_if_any("limit_create_requests")?,
            active_tasks: self.count_if_any("limit_active_tasks")?,
            daily_tasks: self.count_if_any("limit_daily_tasks")?,
        })
    }
}

fn required<T>(column: &str, value: Option<T>) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Corrupt(format!("column {column} is null")))
}

fn whole<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, StoreError> {
    T::try_from(number).map_err(|_| StoreError::Corrupt(format!("column {column} holds {number}")))
}
