//! Flags of the commands on the console's users.

use clap::{Args, Subcommand};
use upscale_core::Email;

use super::{
    location::DataArgs,
    parse::{parse_email, parse_public_url},
};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user; prints a link to set the password.
    Create {
        /// Email address of the user.
        #[arg(value_parser = parse_email)]
        email: Email,
        /// Whose money and tasks they see; by default a new account's.
        #[arg(long, value_name = "ACCOUNT")]
        account: Option<String>,
        #[command(flatten)]
        link: LinkArgs,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Print a link that sets a new password, once, within a day; setting it signs every browser out.
    ResetPassword {
        /// Email address of the user.
        #[arg(value_parser = parse_email)]
        email: Email,
        /// Turn their second factor off, for someone who lost it.
        #[arg(long)]
        forget_second_factor: bool,
        #[command(flatten)]
        link: LinkArgs,
        #[command(flatten)]
        data: DataArgs,
    },
    /// List users of the console.
    List {
        #[command(flatten)]
        data: DataArgs,
    },
}

/// Where the links lead.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// The console as people reach it.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8082", value_parser = parse_public_url)]
    pub(crate) console_url: String,
}

impl UserCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::Create { data, .. } | Self::ResetPassword { data, .. } | Self::List { data } => {
                data
            }
        }
    }
}
