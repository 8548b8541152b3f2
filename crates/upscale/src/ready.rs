//! What a service says on standard output when it is ready: one line of JSON for programs, its addresses for people.

use std::io::{self, IsTerminal};

use serde::Serialize;

use crate::{args::LocationArgs, output};

/// The addresses of what listens.
#[derive(Serialize)]
pub(crate) struct Ready {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) console: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
}

impl Default for Ready {
    fn default() -> Self {
        Self {
            event: "ready",
            api: None,
            results: None,
            console: None,
            admin: None,
            metrics: None,
        }
    }
}

impl Ready {
    /// Once, when everything listens.
    pub(crate) fn announce(&self, location: &LocationArgs) -> anyhow::Result<()> {
        if io::stdout().is_terminal() {
            return output::line(&self.banner(location));
        }
        output::json(self)
    }

    fn banner(&self, location: &LocationArgs) -> String {
        let below =
            |url: &Option<String>, path: &str| url.as_ref().map(|url| format!("{url}{path}"));
        let results = self.results.clone().filter(|_| self.results != self.api);
        let rows = [
            ("API", below(&self.api, "/api/v1/upscales")),
            ("Clients", below(&self.api, "/clients")),
            ("Results", results),
            ("Console", self.console.clone()),
            ("Operators", self.admin.clone()),
            ("Metrics", below(&self.metrics, "/metrics")),
            // The address of a database may hold a password.
            (
                "Database",
                location.database.as_ref().map(|_| "PostgreSQL".to_owned()),
            ),
            (
                "Data",
                location
                    .data
                    .as_ref()
                    .map(|data| data.display().to_string()),
            ),
        ];
        let mut banner = format!(
            "Upscale {} is ready. Ctrl-C stops it.\n",
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in rows {
            if let Some(value) = value {
                banner += &format!("\n  {name:<10} {value}");
            }
        }
        if self.api.is_some() {
            banner += "\n\nNo account yet? `upscale quickstart`, with the same --data or --database, makes one with a key.";
        }
        banner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::StorageArgs;

    #[test]
    fn people_read_every_address_and_no_password() {
        let location = LocationArgs {
            data: Some("/srv/data".into()),
            database: Some("postgres://user:secret@host/name".to_owned()),
            database_connections: 10,
            secret_key_file: None,
            storage: StorageArgs {
                storage: None,
                storage_public_url: None,
            },
        };
        let url = |port: u16| Some(format!("http://127.0.0.1:{port}"));
        let ready = Ready {
            api: url(1),
            results: url(2),
            console: url(3),
            admin: Some("unix:/run/admin.sock".to_owned()),
            metrics: url(5),
            ..Ready::default()
        };
        let banner = ready.banner(&location);
        for expected in [
            "API        http://127.0.0.1:1/api/v1/upscales",
            "Clients    http://127.0.0.1:1/clients",
            "Results    http://127.0.0.1:2",
            "Console    http://127.0.0.1:3",
            "Operators  unix:/run/admin.sock",
            "Metrics    http://127.0.0.1:5/metrics",
            "Database   PostgreSQL",
            "Data       /srv/data",
            "upscale quickstart",
        ] {
            assert!(banner.contains(expected), "{expected}: {banner}");
        }
        assert!(!banner.contains("secret"), "{banner}");
    }
}
