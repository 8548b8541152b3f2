//! Where the operators' console listens, and who may come in: anyone who can open the socket's file, or anyone who knows the
//! token.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Context, anyhow};
use axum::Router;
use upscale_api::{
    AdminOptions, AdminSignIn, AdminState, AdminToken, ApiState, Listener, admin_router,
};

use crate::{
    args::{AdminAddress, AdminArgs},
    secret, socket_file,
    socket_file::SocketFile,
};

const TOKEN_VARIABLE: &str = "UPSCALE_ADMIN_TOKEN";

/// The console's listener, before anyone is answered.
pub(crate) struct Admin {
    pub(crate) listener: Listener,
    /// The socket's file, to be kept until the listener is gone.
    pub(crate) file: Option<SocketFile>,
    /// For the ready line: `unix:FILE` or `http://ADDR:PORT`.
    pub(crate) url: String,
    sign_in: AdminSignIn,
}

impl Admin {
    /// None where no one asked for it.
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
            sign_in: AdminSignIn::FilePermissions,
        }))
    }

    fn by_token(address: SocketAddr, args: &AdminArgs) -> anyhow::Result<Option<Self>> {
        let token = secret::read(TOKEN_VARIABLE, args.admin_token_file.as_deref())?;
        let token = token.with_context(|| {
            format!(
                "every user of this machine can reach {address}: set {TOKEN_VARIABLE} or --admin-token-file, or listen on \
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
            sign_in: AdminSignIn::Token(token),
        }))
    }

    /// What listens, and what answers there; `console_url` is the customers' console as they reach it.
    pub(crate) fn serve(
        self,
        api: ApiState,
        console_url: Option<String>,
    ) -> (Listener, Option<SocketFile>, Router) {
        let options = AdminOptions {
            sign_in: self.sign_in,
            console_url,
        };
        let router = admin_router(AdminState::new(api, options));
        (self.listener, self.file, router)
    }
}
