//! Claim, fetch, process, settle: takes jobs out of the store, downloads their sources under guard, hands
//! the bytes to a throw-away child process, stores what comes back and settles. Knows neither HTTP serving
//! nor SQL nor pixels.

mod alone;
mod attempt_error;
mod fetch;
mod heartbeat;
mod maintenance;
mod owners;
mod process;
mod run;
mod slots;
mod stages;
mod work_once;

pub use attempt_error::AttemptError;
pub use fetch::{
    ConnectTo, FetchBudgets, FetchOptions, FetchSetupError, Fetcher, Forbidden, Guard, Source,
    redirected,
};
pub use ipnet::{IpNet, Ipv6Net};
pub use maintenance::{MaintenanceOptions, maintain};
pub use run::{Worker, WorkerOptions, WorkerSetupError};
pub use work_once::AttemptEnd;
