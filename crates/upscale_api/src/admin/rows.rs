//! Rows of the tables: what a page shows of a task, a payment, an action.

use upscale_core::Timestamp;
use upscale_store::{OperatorAction, OperatorTask, PaymentRecord, PaymentState, TaskRecord};

use crate::pages::shown::{Moment, failure, money, state_word};

/// A task of anyone.
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) account: String,
    pub(crate) state: &'static str,
    pub(crate) parameters: String,
    pub(crate) created: Moment,
    pub(crate) ended: Option<Moment>,
    pub(crate) money: String,
    /// Which attempt it is in, by whom; none where no work is owed.
    pub(crate) work: Option<String>,
    pub(crate) failure: Option<String>,
    pub(crate) source: String,
}

impl TaskRow {
    pub(crate) fn of(task: &OperatorTask) -> Self {
        let work = task.job.as_ref().map(|job| match &job.worker {
            Some(worker) => format!("attempt {}, by {}", job.attempt, short(worker)),
            None => format!("waiting, {} attempts so far", job.attempt),
        });
        Self {
            ended: task.finished_at.map(Moment::of),
            work,
            source: without_query(&task.source_url).to_owned(),
            ..Self::of_task(&task.task)
        }
    }

    pub(crate) fn of_record(record: &TaskRecord) -> Self {
        Self {
            ended: record.finished_at.map(Moment::of),
            source: without_query(record.source_url.as_str()).to_owned(),
            ..Self::of_task(&record.task)
        }
    }

    fn of_task(task: &upscale_core::Task) -> Self {
        Self {
            id: task.id.to_string(),
            account: task.account_id.to_string(),
            state: state_word(&task.state),
            parameters: task.parameters.to_string(),
            created: Moment::of(task.created_at),
            ended: None,
            money: money(task),
            work: None,
            failure: failure(&task.state),
            source: String::new(),
        }
    }
}

/// A payment, credited or not.
pub(crate) struct PaymentRow {
    pub(crate) id: String,
    pub(crate) at: Moment,
    pub(crate) state: &'static str,
    pub(crate) refusal: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) package: String,
    pub(crate) price: String,
    pub(crate) credits: String,
    pub(crate) taken_back: Option<String>,
    pub(crate) invoice: Option<String>,
    pub(crate) in_dispute: bool,
}

impl PaymentRow {
    pub(crate) fn of(payment: &PaymentRecord) -> Self {
        let (state, refusal) = match &payment.state {
            PaymentState::Unknown => ("unknown", None),
            PaymentState::Credited => ("credited", None),
            PaymentState::Refused(reason) => ("refused", Some(reason.clone())),
        };
        let price = payment.price.as_ref();
        let has_returned = payment.taken_back > upscale_core::Credits::ZERO;
        Self {
            id: payment.id.clone(),
            at: Moment::of(payment.first_at),
            state,
            refusal,
            account: payment.account_id.as_ref().map(ToString::to_string),
            package: payment.package.clone().unwrap_or_default(),
            price: price.map_or_else(String::new, |(price, currency)| currency.show(*price)),
            credits: payment
                .credits
                .map(|credits| credits.to_string())
                .unwrap_or_default(),
            taken_back: has_returned.then(|| payment.taken_back.to_string()),
            invoice: payment.invoice.clone(),
            in_dispute: payment.in_dispute,
        }
    }
}

/// One thing an operator did.
pub(crate) struct ActionRow {
    pub(crate) at: Moment,
    pub(crate) account: String,
    pub(crate) operator: String,
    pub(crate) action: &'static str,
    pub(crate) detail: String,
    pub(crate) reason: String,
}

impl ActionRow {
    pub(crate) fn of(action: &OperatorAction) -> Self {
        Self {
            at: Moment::of(action.at),
            account: action.account_id.to_string(),
            operator: action.operator.clone(),
            action: action.action.as_str(),
            detail: action.detail.clone(),
            reason: action.reason.clone(),
        }
    }
}

/// A query may be a secret of the customer's: lists do without.
pub(crate) fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

/// The beginning of what is random in a name such as `worker_…`, for people to tell a few apart.
pub(crate) fn short(id: &str) -> &str {
    let random = id.rsplit('_').next().unwrap_or(id);
    random.get(..8).unwrap_or(random)
}

/// How long ago, of two moments of one clock.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.seconds_since(then).max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_short_and_keep_queries_to_themselves() {
        let at = Timestamp::from_micros(0).plus_seconds(1_000_000);
        let before = |seconds: i64| ago(at.plus_seconds(-seconds), at);
        assert_eq!(
            [0, 119, 120, 7_199, 7_200, 200_000].map(before),
            ["0 s", "119 s", "2 min", "119 min", "2 h", "2 days"]
        );
        assert_eq!(ago(at.plus_seconds(5), at), "0 s", "a clock stepped back");
        assert_eq!(
            without_query("https://a.example/b?token=c"),
            "https://a.example/b"
        );
        assert_eq!(
            (short("worker_0123456789"), short("éé")),
            ("01234567", "éé")
        );
    }
}
