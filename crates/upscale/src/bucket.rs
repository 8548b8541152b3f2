//! The bucket that `--storage` names, with the variables of the AWS tools.

use anyhow::Context;
use upscale_store::{BucketOptions, Results};

use crate::args::StorageArgs;

/// The bucket of `--storage`; none without the flag.
pub(crate) fn bucket(args: &StorageArgs) -> anyhow::Result<Option<Results>> {
    let Some(url) = &args.storage else {
        return Ok(None);
    };
    let is_ours = |(name, _): &(String, String)| name.starts_with("AWS_");
    let options = BucketOptions {
        url: url.clone(),
        // A variable that is no text is none of the AWS tools'.
        variables: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(is_ours)
            .collect(),
        public_endpoint: args.storage_public_url.clone(),
    };
    let results = Results::bucket(&options).context("--storage")?;
    Ok(Some(results))
}
