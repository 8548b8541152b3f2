//! The worker's side of a GPU: its process is started here, beside everything else, with no more of our environment than
//! drivers read.

use std::{ffi::OsString, path::PathBuf};

use upscale_pipeline::{DeviceLink, DeviceProcess};

use crate::{
    args::{DeviceChoice, WorkArgs},
    model::Served,
    threads::threads,
    work::{PROGRAM, kernels_environment},
};

/// How the variables begin that loaders and drivers of GPUs read; the service's secrets stay with it.
const OF_DRIVERS: [&str; 14] = [
    "VK_",
    "MESA_",
    "LIBGL_",
    "LP_",
    "GALLIVM_",
    "NVIDIA_",
    "__NV",
    "CUDA_",
    "AMD_",
    "RADV_",
    "INTEL_",
    "ANV_",
    "XDG_DATA_",
    "LD_LIBRARY_PATH",
];

/// Starts a process for the GPU that the flags choose and keeps it for as long as the runtime lives; none where the CPU is
/// to compute, or no images are made here. Until the process says that it is ready the CPU computes.
pub(crate) fn start(args: &WorkArgs, models: &Served) -> Option<DeviceLink> {
    if args.device == DeviceChoice::Cpu || args.workers == Some(0) {
        return None;
    }
    let process = DeviceProcess {
        program: PathBuf::from(PROGRAM),
        arguments: arguments(args, models),
        environment: environment().chain(kernels_environment()).collect(),
        insists: args.device != DeviceChoice::Auto,
    };
    let link = DeviceLink::default();
    let of_children = link.clone();
    tokio::spawn(async move { process.keep(&link).await });
    Some(of_children)
}

fn arguments(args: &WorkArgs, models: &Served) -> Vec<OsString> {
    let flags = [
        ("--device", args.device.to_string()),
        ("--parent", std::process::id().to_string()),
        ("--threads", threads(args.threads).to_string()),
        ("--look", args.look.to_string()),
    ];
    let flags = flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.into(), value.into()]);
    let command = [OsString::from("gpu")].into_iter().chain(flags);
    command.chain(models.child_arguments()).collect()
}

fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        OF_DRIVERS.iter().any(|start| name.starts_with(start))
    })
}
