//! One account: its money, its limits, its keys and people, and the beginnings of everything else that is known of it.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use upscale_core::{AccountId, OwnLimits};
use upscale_store::{Account, PaymentFilter, StoreError, TaskFilter, User};

use super::{
    change::Form,
    rows::{ActionRow, PaymentRow, TaskRow},
    state::AdminState,
    visitor::{Operator, Visitor},
};
use crate::pages::{
    error::ConsoleError,
    form::Fields,
    listing::{Page, asked_for, cursor},
    page::{Layout, show},
    query::{Before, Done, PageQuery, TasksOf},
    rows::{KeyRow, LedgerRow},
    shown::Moment,
};

/// Lines of each table on the account's own page.
const LINES_FIRST: u32 = 8;
/// Lines of a page that shows nothing else.
pub(crate) const LINES_A_PAGE: usize = 50;

/// The three forms of the page, as they were sent or as they are first.
pub(crate) struct Forms {
    pub(crate) limits: Form,
    pub(crate) adjust: Form,
    pub(crate) purchase: Form,
}

#[derive(Template)]
#[template(path = "admin/account.html")]
struct AccountPage {
    layout: Layout,
    /// Whether this visitor has a name to change something under.
    may_change: bool,
    account: Account,
    created: Moment,
    opened: Option<Moment>,
    limits: [(&'static str, u32, bool); 3],
    forms: Forms,
    keys: Vec<KeyRow>,
    users: Vec<UserRow>,
    ledger: Vec<LedgerRow>,
    tasks: Vec<TaskRow>,
    payments: Vec<PaymentRow>,
    actions: Vec<ActionRow>,
}

struct UserRow {
    id: String,
    email: String,
    has_password: bool,
    has_second_factor: bool,
    is_verified: bool,
    created: Moment,
}

impl UserRow {
    fn of(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email.to_string(),
            has_password: user.password_hash.is_some(),
            has_second_factor: user.totp_secret.is_some(),
            is_verified: user.verified_at.is_some(),
            created: Moment::of(user.created_at),
        }
    }
}

/// `GET /accounts/{id}`.
pub(crate) async fn one(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path(id): Path<String>,
    PageQuery(Done { done }): PageQuery<Done>,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let forms = Forms::first(account.own_limits)?;
    let mut page = page(&state, &visitor, account, forms).await?;
    page.layout.notice = notice(&done);
    Ok(show(StatusCode::OK, &page))
}

/// The page once more, with what is wrong beside the fields.
pub(crate) async fn show_again(
    state: &AdminState,
    visitor: &Visitor,
    account: Account,
    forms: Forms,
) -> Result<Response, ConsoleError> {
    let page = page(state, visitor, account, forms).await?;
    Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

fn notice(done: &str) -> Option<&'static str> {
    match done {
        "limits" => Some("Limits set. They apply from the account's next request on."),
        "same" => Some("These limits were already set; nothing changed."),
        "adjusted" => Some("Balance adjusted. The reason is recorded."),
        "purchased" => Some("Purchase entered. API access is enabled."),
        "before" => Some("This form was submitted before; nothing changed."),
        "revoked" => Some("Key revoked. It is refused from the next request on."),
        _ => None,
    }
}

impl Forms {
    /// As the page shows them first: limits filled in, the rest empty.
    pub(crate) fn first(own: OwnLimits) -> Result<Self, ConsoleError> {
        let show = |limit: Option<u32>| limit.map_or(String::new(), |limit| limit.to_string());
        let limits = Fields::of([
            ("requests", show(own.create_requests_per_minute)),
            ("active", show(own.active_tasks)),
            ("daily", show(own.daily_tasks)),
        ]);
        Ok(Self {
            limits: Form::filled(limits)?,
            adjust: Form::empty()?,
            purchase: Form::empty()?,
        })
    }
}

/// The account of an address; there is none for an id that is no id.
pub(crate) async fn find(state: &AdminState, id: &str) -> Result<Account, ConsoleError> {
    let id = AccountId::parse(id).ok_or(ConsoleError::NotFound)?;
    let account = state.api.store.accounts().find(&id).await?;
    account.ok_or(ConsoleError::NotFound)
}

async fn page(
    state: &AdminState,
    visitor: &Visitor,
    account: Account,
    forms: Forms,
) -> Result<AccountPage, ConsoleError> {
    let (store, id) = (&state.api.store, account.id);
    let ledger = store.accounts().list_ledger(&id, LINES_FIRST).await?;
    let tasks = store.tasks().list(&id, TaskFilter::All, None, LINES_FIRST);
    let tasks = tasks.await?;
    let keys = store.accounts().list_keys(&id, None, LINES_FIRST).await?;
    let payments = PaymentFilter::OfAccount(id);
    let payments = store.payments().list(&payments, LINES_FIRST).await?;
    let actions = store
        .operator()
        .list_actions(Some(&id), i64::MAX, LINES_FIRST)
        .await?;
    let now = state.api.store.now();
    Ok(AccountPage {
        layout: visitor.layout("/accounts", &account.name),
        may_change: visitor.operator().is_some(),
        created: Moment::of(account.created_at),
        opened: account.activated_at.map(Moment::of),
        limits: limits(account.own_limits),
        account,
        forms,
        keys: keys.iter().map(|key| KeyRow::of(key, now)).collect(),
        users: users(state, &id).await?,
        ledger: ledger.iter().map(LedgerRow::of).collect(),
        tasks: tasks.iter().map(TaskRow::of_record).collect(),
        payments: payments.iter().map(PaymentRow::of).collect(),
        actions: actions.iter().map(ActionRow::of).collect(),
    })
}

fn limits(own: OwnLimits) -> [(&'static str, u32, bool); 3] {
    let holds = own.effective();
    [
        (
            "Create requests a minute",
            holds.create_requests_per_minute,
            own.create_requests_per_minute.is_some(),
        ),
        (
            "Tasks at a time",
            holds.active_tasks,
            own.active_tasks.is_some(),
        ),
        (
            "Tasks a UTC day",
            holds.daily_tasks,
            own.daily_tasks.is_some(),
        ),
    ]
}

async fn users(state: &AdminState, id: &AccountId) -> Result<Vec<UserRow>, StoreError> {
    let users = state.api.store.users().list_of(id).await?;
    Ok(users.iter().map(UserRow::of).collect())
}

#[derive(Template)]
#[template(path = "admin/ledger.html")]
struct LedgerPage {
    layout: Layout,
    account: Account,
    ledger: Vec<LedgerRow>,
    older: Option<i64>,
}

/// `GET /accounts/{id}/ledger`.
pub(crate) async fn ledger(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path(id): Path<String>,
    PageQuery(before): PageQuery<Before>,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let lines = state
        .api
        .store
        .accounts()
        .list_ledger_before(&account.id, before.line(), asked_for(LINES_A_PAGE))
        .await?;
    let lines = Page::of(lines, LINES_A_PAGE);
    let page = LedgerPage {
        layout: visitor.layout("/accounts", "Ledger"),
        older: lines.older(|line| line.sequence),
        ledger: lines.items.iter().map(LedgerRow::of).collect(),
        account,
    };
    Ok(show(StatusCode::OK, &page))
}

#[derive(Template)]
#[template(path = "admin/account_tasks.html")]
struct TasksPage {
    layout: Layout,
    account: Account,
    filter: TaskFilter,
    filters: [TaskFilter; 4],
    tasks: Vec<TaskRow>,
    older: Option<String>,
}

/// `GET /accounts/{id}/tasks`.
pub(crate) async fn tasks(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path(id): Path<String>,
    PageQuery(wanted): PageQuery<TasksOf>,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let filter = wanted.filter();
    let found = state
        .api
        .store
        .tasks()
        .list(
            &account.id,
            filter,
            wanted.after.as_ref(),
            asked_for(LINES_A_PAGE),
        )
        .await?;
    let found = Page::of(found, LINES_A_PAGE);
    let page = TasksPage {
        layout: visitor.layout("/accounts", "Tasks of an account"),
        filter,
        filters: TaskFilter::EVERY,
        older: found.older(|last| cursor(last.task.created_at, last.task.id)),
        tasks: found.items.iter().map(TaskRow::of_record).collect(),
        account,
    };
    Ok(show(StatusCode::OK, &page))
}
