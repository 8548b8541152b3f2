//! Where the operators' console listens, and who may come in: whoever can open the socket's file, or whoever knows the
//! token.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Context, anyhow};
use axum::Router;
use upscale_api::{
    AdminDoor, AdminOptions, AdminState, AdminToken, ApiState, Listener, admin_router,
};

use crate::{args::AdminArgs, secret, socket_file, socket_file::SocketFile};

const TOKEN_VARIABLE: &str = "UPSCALE_ADMIN_TOKEN";

/// As `--admin-listen` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdminAddress {
    /// A socket's file.
    Unix(PathBuf),
    /// An address of this machine's own network.
    Loopback(SocketAddr),
}

/// The console's listener, before anybody is answered.
pub(crate) struct Admin {
    pub(crate) listener: Listener,
    /// The socket's file, to be kept until the listener is gone.
    pub(crate) file: Option<SocketFile>,
    /// For the ready line: `unix:FILE` or `http://ADDR:PORT`.
    pub(crate) url: String,
    door: AdminDoor,
}

impl Admin {
    /// None where nobody asked for it.
    ///
    /// # Errors
    /// When it cannot listen, or an address of the network has no token.
    pub(crate) fn listen(args: &AdminArgs) -> anyhow::Result<Option<Self>> {
        match &args.admin_listen {
            None => Ok(None),
            Some(AdminAddress::Unix(path)) => Self::by_file(path.clone(), args.admin_socket_mode),
            Some(AdminAddress::Loopback(address)) => Self::by_token(*address, args),
        }
        .with_context(|| "the operators' console (--admin-listen)")
    }

    fn by_file(path: PathBuf, mode: u32) -> anyhow::Result<Option<Self>> {
        let url = format!("unix:{}", path.display());
        let (listener, file) =
            socket_file::listen(&path, mode).with_context(|| format!("cannot listen on {url}"))?;
        Ok(Some(Self {
            listener: listener.into(),
            file: Some(file),
            url,
            door: AdminDoor::FilePermissions,
        }))
    }

    fn by_token(address: SocketAddr, args: &AdminArgs) -> anyhow::Result<Option<Self>> {
        let token = secret::read(TOKEN_VARIABLE, args.admin_token_file.as_deref())?;
        let token = token.with_context(|| {
            format!(
                "everybody on this machine can reach {address}: set {TOKEN_VARIABLE} or --admin-token-file, or listen on \
                 unix:FILE, whose permissions decide"
            )
        })?;
        let token = AdminToken::new(&token).map_err(|error| anyhow!(error))?;
        let listener =
            upscale_api::listen(address).with_context(|| format!("cannot listen on {address}"))?;
        Ok(Some(Self {
            url: format!("http://{}", listener.local_addr()?),
            listener: listener.into(),
            file: None,
            door: AdminDoor::Token(token),
        }))
    }

    /// What listens, and what answers there; `console_url` is the customers' console as they reach it.
    pub(crate) fn serve(
        self,
        api: ApiState,
        console_url: Option<String>,
    ) -> (Listener, Option<SocketFile>, Router) {
        let options = AdminOptions {
            door: self.door,
            console_url,
        };
        let router = admin_router(AdminState::new(api, options));
        (self.listener, self.file, router)
    }
}

/// `unix:FILE`, or an address and a port that only this machine reaches.
pub(crate) fn parse_address(text: &str) -> Result<AdminAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("a file is missing after unix:".to_owned()),
            path => Ok(AdminAddress::Unix(path.into())),
        };
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        "must be unix:FILE, such as unix:/run/upscale/admin.sock, or a loopback address and port".to_owned()
    })?;
    if !address.ip().to_canonical().is_loopback() {
        return Err(format!(
            "{address} can be reached from other machines: the operators' console listens on unix:FILE or a loopback \
             address alone"
        ));
    }
    Ok(AdminAddress::Loopback(address))
}

/// Octal permissions of the socket's file.
pub(crate) fn parse_mode(text: &str) -> Result<u32, String> {
    match text.trim_start_matches('0') {
        "600" => Ok(0o600),
        "660" => Ok(0o660),
        _ => Err("must be 600 (its owner) or 660 (its group, too)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_listened_to() {
        for (text, is_taken) in [
            ("unix:/run/upscale/admin.sock", true),
            ("127.0.0.1:8083", true),
            ("127.8.0.1:0", true),
            ("[::1]:8083", true),
            ("[::ffff:127.0.0.1]:8083", true),
            ("unix:", false),
            ("0.0.0.0:8083", false),
            ("[::]:8083", false),
            ("192.168.1.2:8083", false),
            ("localhost:8083", false),
            ("/run/upscale/admin.sock", false),
        ] {
            assert_eq!(parse_address(text).is_ok(), is_taken, "{text}");
        }
        assert_eq!(
            (parse_mode("600"), parse_mode("0660")),
            (Ok(0o600), Ok(0o660))
        );
        for wrong in ["666", "777", "", "60"] {
            assert!(parse_mode(wrong).is_err(), "{wrong}");
        }
    }
}
