//! `upscale user …`: the people who sign in to the console. No one learns a password here: a link sets it, once.

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{Email, SecretToken};
use upscale_store::{Store, StoreOptions, User, UserOutcome};

use crate::{
    args::{DataArgs, LinkArgs, UserCommand},
    data::{account_id, block_on, no_account, open_existing_store, open_store},
    output,
    shown::time,
};

/// A link works this long.
const LINK_SECONDS: i64 = 86_400;

/// Runs one of the user commands.
pub(crate) fn user(command: &UserCommand) -> anyhow::Result<()> {
    block_on(async {
        match command {
            UserCommand::Create {
                email,
                account,
                link,
                data,
            } => create(email, account.as_deref(), link, data).await,
            UserCommand::ResetPassword {
                email,
                forget_second_factor,
                link,
                data,
            } => reset_password(email, *forget_second_factor, link, data).await,
            UserCommand::List { data } => list(data).await,
        }
    })
}

#[derive(Serialize)]
struct UserBody {
    user: String,
    account: String,
    email: String,
    has_password: bool,
    has_second_factor: bool,
    is_verified: bool,
    created_at: String,
}

#[derive(Serialize)]
struct LinkBody {
    link: String,
    #[serde(flatten)]
    user: UserBody,
}

impl From<&User> for UserBody {
    fn from(user: &User) -> Self {
        Self {
            user: user.id.to_string(),
            account: user.account_id.to_string(),
            email: user.email.to_string(),
            has_password: user.password_hash.is_some(),
            has_second_factor: user.totp_secret.is_some(),
            is_verified: user.verified_at.is_some(),
            created_at: time(user.created_at),
        }
    }
}

async fn create(
    email: &Email,
    account: Option<&str>,
    link: &LinkArgs,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_store(&data.location, StoreOptions::default()).await?;
    let id = account.map(account_id).transpose()?;
    match store.users().create(id.as_ref(), email, None).await? {
        UserOutcome::Created(user) => print_link(&store, &user, link, data.json).await,
        UserOutcome::EmailTaken => bail!("a user with the email {email} already exists"),
        UserOutcome::NoSuchAccount => bail!(no_account(account.unwrap_or_default())),
    }
}

async fn reset_password(
    email: &Email,
    forget_second_factor: bool,
    link: &LinkArgs,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let find = async || {
        let user = store.users().find(email).await?;
        user.with_context(|| {
            format!("there is no user with the email {email}: see `upscale user list`")
        })
    };
    let user = find().await?;
    if forget_second_factor {
        store.users().set_totp(&user.id, None).await?;
    }
    print_link(&store, &find().await?, link, data.json).await
}

async fn print_link(
    store: &Store,
    user: &User,
    link: &LinkArgs,
    as_json: bool,
) -> anyhow::Result<()> {
    let token = SecretToken::random()?;
    store
        .users()
        .create_reset(&user.id, &token.hash(), LINK_SECONDS)
        .await?;
    let link = format!("{}/reset/{}", link.console_url, token.reveal());
    if as_json {
        let user = UserBody::from(user);
        return output::json(&LinkBody { link, user });
    }
    output::line(&format!(
        "user     {}\naccount  {}\nlink     {link}",
        user.email, user.account_id
    ))?;
    output::line("The link sets the password. It works once, within a day.")?;
    if user.verified_at.is_none() {
        output::line(
            "This email address was never confirmed: the new password revokes all keys of the account and turns off two-factor authentication.",
        )?;
    }
    Ok(())
}

async fn list(data: &DataArgs) -> anyhow::Result<()> {
    let users = open_existing_store(&data.location)
        .await?
        .users()
        .list()
        .await?;
    let users: Vec<UserBody> = users.iter().map(UserBody::from).collect();
    if data.json {
        return output::json(&serde_json::json!({ "users": users }));
    }
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let row = |user: &UserBody| {
        vec![
            user.account.clone(),
            yes_no(user.has_password),
            yes_no(user.has_second_factor),
            yes_no(user.is_verified),
            user.created_at.clone(),
            user.email.clone(),
        ]
    };
    let names = [
        "ACCOUNT",
        "PASSWORD",
        "SECOND FACTOR",
        "VERIFIED",
        "CREATED",
        "E-MAIL",
    ];
    output::table(&names, &users.iter().map(row).collect::<Vec<_>>())
}
