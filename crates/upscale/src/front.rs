//! The listeners of customers and of operators: their addresses, the ones clients see, and what answers there.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, anyhow, bail};
use axum::Router;
use tokio::{net::TcpListener, sync::watch};
use upscale_api::{
    Addresses, ApiLimits, ApiState, ConsoleOptions, ConsoleState, Listener, PermitLimits,
    PublicUrls, SendMail, ServeLimits, Stripe, Tls, api_router, console_router, results_router,
    serve as serve_http,
};

use crate::{
    admin::Admin,
    args::{FrontArgs, ProcessArgs},
    data::Data,
    mail,
    open_files::{self, OpenFiles},
    ready::Ready,
    serve::{Parts, until},
    stripe,
};

/// What can be judged before anything is opened: the addresses that clients are told, and the certificate.
///
/// # Errors
/// When a link could not work, or there is no certificate to serve with; in words.
pub(crate) fn check(args: &FrontArgs) -> anyhow::Result<Option<Tls>> {
    let tls = load_certificate(args)?;
    decide_urls(args, args.listen, args.results_listen)?;
    if tls.is_some() && args.console_listen.is_some() && args.console_url.is_none() {
        bail!(
            "the console is served over TLS: name it as people type it with --console-url, such as \
             https://console.example.com"
        );
    }
    Ok(tls)
}

fn load_certificate(args: &FrontArgs) -> anyhow::Result<Option<Tls>> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::load(certificate, key);
            tls.map(Some).context("TLS (--tls-cert, --tls-key)")
        }
        (None, None) => Ok(None),
        (Some(_), None) => bail!("--tls-cert needs --tls-key, the file of its private key"),
        (None, Some(_)) => bail!("--tls-key needs --tls-cert, the file of its certificate"),
    }
}

fn decide_urls(
    args: &FrontArgs,
    api: SocketAddr,
    results: Option<SocketAddr>,
) -> anyhow::Result<PublicUrls> {
    let decided = PublicUrls::decide(&Addresses {
        api,
        results,
        base_url: args.base_url.as_deref(),
        result_url: args.result_url.as_deref(),
        is_tls: args.tls_cert.is_some(),
    });
    decided.map_err(|words| anyhow!(words))
}

/// The listeners of what customers reach, and of what operators do.
pub(crate) struct Front {
    api: TcpListener,
    /// Where result files are served besides, for a host of their own.
    results: Option<TcpListener>,
    console: Option<TcpListener>,
    /// As people reach the customers' console, where it is served.
    console_url: Option<String>,
    admin: Option<Admin>,
    urls: PublicUrls,
    tls: Option<Tls>,
    stripe: Option<Stripe>,
    send_mail: Option<SendMail>,
    files: OpenFiles,
}

impl Front {
    pub(crate) fn listen(
        args: &FrontArgs,
        tls: Option<Tls>,
        ready: &mut Ready,
    ) -> anyhow::Result<Self> {
        let api = listen(args.listen)?;
        let results = args.results_listen.map(listen).transpose()?;
        let of_results = results.as_ref().map(TcpListener::local_addr).transpose()?;
        let urls = decide_urls(args, api.local_addr()?, of_results)?;
        let url = |listener: &TcpListener| url(listener, tls.is_some());
        ready.api = Some(url(&api)?);
        ready.results = Some(url(results.as_ref().unwrap_or(&api))?);
        let console = args.console_listen.map(listen).transpose()?;
        ready.console = console.as_ref().map(url).transpose()?;
        let admin = Admin::listen(&args.admin)?;
        ready.admin = admin.as_ref().map(|admin| admin.url.clone());
        Ok(Self {
            api,
            results,
            console,
            console_url: args.console_url.clone().or_else(|| ready.console.clone()),
            admin,
            urls,
            tls,
            stripe: stripe::configured(&args.stripe)?,
            send_mail: mail::configured(args)?,
            files: open_files::budget(),
        })
    }

    /// What its requests share. Before the first of them: a storage that cannot be used must not be learnt from tasks, nor
    /// one that customers cannot reach from their links.
    ///
    /// # Errors
    /// When customers would be sent on to where they cannot go.
    pub(crate) async fn state(
        &mut self,
        args: &FrontArgs,
        data: &Data,
    ) -> anyhow::Result<ApiState> {
        let mut state = ApiState::new(
            data.store.clone(),
            data.results.clone(),
            &self.urls.base_url,
            &self.urls.result_url,
            api_limits(args, self.files),
        )
        .with_delivery(args.result_delivery.into());
        if let Some(stripe) = self.stripe.take() {
            state = state.with_stripe(stripe);
        }
        let reachable = state.check_redirects().await;
        reachable.map_err(|words| anyhow!(words))?;
        state.try_storage().await;
        Ok(state)
    }

    /// Answers from now on.
    pub(crate) fn start(
        self,
        state: &ApiState,
        args: &FrontArgs,
        process: &ProcessArgs,
        parts: &mut Parts,
        stopped: &watch::Receiver<bool>,
    ) {
        parts.spawn(watch_storage(state.clone(), stopped.clone()));
        if let Some(tls) = self.tls.clone() {
            parts.spawn(watch_certificate(tls, stopped.clone()));
        }
        let limits = ServeLimits {
            drain_timeout: Duration::from_secs(process.drain),
            connections_max: self.files.connections,
            trusted_proxies: args.trusted_proxy.clone(),
            ..ServeLimits::default()
        };
        let tls = self.tls.as_ref();
        let mut serve = |listener, router| {
            let listener = Listener::with_tls(listener, tls);
            parts.spawn(front(listener, router, limits.clone(), stopped.clone()));
        };
        serve(self.api, api_router(state.clone()));
        if let Some(listener) = self.results {
            serve(listener, results_router(state.clone()));
        }
        if let Some(listener) = self.console {
            let options = ConsoleOptions {
                url: args.console_url.clone(),
                send_mail: self.send_mail,
            };
            let state = ConsoleState::new(state.clone(), options);
            let listener = Listener::with_tls(listener, tls);
            parts.spawn(console(listener, state, limits.clone(), stopped.clone()));
        }
        if let Some(admin) = self.admin {
            let (listener, file, router) = admin.serve(state.clone(), self.console_url);
            let limits = inside(&limits);
            let stopped = stopped.clone();
            parts.spawn(async move {
                let _until_the_end = file;
                front(listener, router, limits, stopped).await
            });
        }
    }
}

async fn watch_storage(state: ApiState, stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
    tokio::select! {
        () = state.watch_storage() => {}
        () = until(stopped) => {}
    }
    Ok(())
}

async fn watch_certificate(tls: Tls, stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
    tokio::select! {
        () = tls.watch() => {}
        () = until(stopped) => {}
    }
    Ok(())
}

/// Of a listener that operators and their programs reach: few connections, and all of one address, as it is with loopback.
pub(crate) fn inside(limits: &ServeLimits) -> ServeLimits {
    ServeLimits {
        connections_max: open_files::INSIDE_CONNECTIONS,
        address_connections_max: None,
        ..limits.clone()
    }
}

fn api_limits(args: &FrontArgs, files: OpenFiles) -> ApiLimits {
    ApiLimits {
        permits: PermitLimits {
            downloads: files.downloads,
            waiting: files.connections / 2,
            ..PermitLimits::default()
        },
        trusted_proxies: args.trusted_proxy.clone(),
        failing_auth_per_minute: args.failing_auth_per_minute,
        reads_per_second: args.reads_per_second,
        ..ApiLimits::default()
    }
}

pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    upscale_api::listen(address).with_context(|| format!("cannot listen on {address}"))
}

pub(crate) fn url(listener: &TcpListener, is_tls: bool) -> anyhow::Result<String> {
    let scheme = if is_tls { "https" } else { "http" };
    Ok(format!("{scheme}://{}", listener.local_addr()?))
}

pub(crate) async fn front(
    listener: impl Into<Listener>,
    router: Router,
    limits: ServeLimits,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    Ok(serve_http(listener, router, limits, until(stopped)).await?)
}

/// Its pages, and the mail they promised: that goes out while there is time to stop in.
async fn console(
    listener: Listener,
    state: ConsoleState,
    limits: ServeLimits,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (drain, router) = (limits.drain_timeout, console_router(state.clone()));
    let too_late = async {
        until(stopped.clone()).await;
        tokio::time::sleep(drain).await;
    };
    let all = async {
        front(listener, router, limits, stopped.clone()).await?;
        state.mailed().await;
        Ok(())
    };
    tokio::select! {
        biased;
        ended = all => ended,
        () = too_late => {
            tracing::warn!(?drain, "the console's last mails were not waited for any longer");
            Ok(())
        }
    }
}
