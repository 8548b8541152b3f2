//! `upscale backup`: a copy of the data directory's database while the service runs, audited before it counts as one;
//! with the result files it names, if wanted.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_store::back_up;

use crate::{
    args::{BackupArgs, LocationArgs, StorageArgs},
    data::{RESULTS_FOLDER, block_on, open_existing_store},
    output,
};

#[derive(Serialize)]
struct BackupBody {
    database_bytes: u64,
    result_files: u64,
    breaches: usize,
}

/// Copies, then checks the copy's books; success only when they balance.
pub(crate) fn backup(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let database_bytes = back_up(&args.data, &args.out)?;
    let (from, to) = (
        args.data.join(RESULTS_FOLDER),
        args.out.join(RESULTS_FOLDER),
    );
    let result_files = if args.results {
        copy_files(&from, &to)?
    } else {
        0
    };
    let breaches = count_breaches(&args.out)?;
    let body = BackupBody {
        database_bytes,
        result_files,
        breaches,
    };
    if args.json {
        output::json(&body)?;
    } else {
        let out = args.out.display();
        output::line(&format!(
            "{database_bytes} bytes of database and {result_files} result files in {out}; the copy's audit found {breaches} breaches"
        ))?;
    }
    Ok(if breaches == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn count_breaches(copy: &Path) -> anyhow::Result<usize> {
    let location = LocationArgs {
        data: Some(copy.to_owned()),
        database: None,
        database_connections: 1,
        secret_key_file: None,
        storage: StorageArgs {
            storage: None,
            storage_public_url: None,
        },
    };
    let report = block_on(async { Ok(open_existing_store(&location).await?.audit(None).await?) })?;
    Ok(report.breaches.len())
}

/// After the database: whatever it names was there before. A file that retention removes meanwhile is not missed.
fn copy_files(from: &Path, to: &Path) -> anyhow::Result<u64> {
    if !from.is_dir() {
        bail!(
            "there is no folder {}: are the results in a bucket?",
            from.display()
        );
    }
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    let mut copied = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".png") {
            continue;
        }
        match fs::copy(entry.path(), to.join(entry.file_name())) {
            // A thumbnail goes along with its result and is none.
            Ok(_) => copied += u64::from(!name.ends_with(".thumb.png")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| entry.path().display().to_string()),
        }
    }
    Ok(copied)
}
