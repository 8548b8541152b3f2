//! Which GPUs this machine has, as its drivers name them.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
};

use wgpu::{
    Adapter, Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags,
    MemoryBudgetThresholds,
};

/// Share of a device's memory, in percent, beyond which nothing is taken of it.
const MEMORY_PERCENT: u8 = 90;

/// A device that a driver offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterFacts {
    /// Its number: [`crate::Gpu::open`] takes it.
    pub index: usize,
    /// As the driver calls it.
    pub name: String,
    /// The driver, with its version.
    pub driver: String,
    /// What it is.
    pub kind: AdapterKind,
    /// The largest buffer that it can compute in, in bytes. How much memory it has in all no driver says through Vulkan's
    /// portable part.
    pub buffer_bytes_max: u64,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterKind {
    /// With memory of its own.
    Discrete,
    /// In the processor, with the processor's memory.
    Integrated,
    /// Of a virtual machine.
    Virtual,
    /// No device at all: a driver that computes on the processor, such as Mesa's lavapipe.
    Software,
    /// The driver does not say.
    Other,
}

impl AdapterKind {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Software => "software",
            Self::Other => "other",
        }
    }
}

/// The devices that this machine's Vulkan drivers offer, in the drivers' order; none where there is no Vulkan.
#[must_use]
pub fn adapters() -> Vec<AdapterFacts> {
    let found = enumerate();
    found
        .iter()
        .enumerate()
        .map(|(index, adapter)| facts(index, adapter))
        .collect()
}

pub(crate) fn enumerate() -> Vec<Adapter> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN,
        flags: InstanceFlags::empty(),
        memory_budget_thresholds: MemoryBudgetThresholds {
            for_resource_creation: Some(MEMORY_PERCENT),
            for_device_loss: None,
        },
        ..InstanceDescriptor::new_without_display_handle()
    });
    ready(instance.enumerate_adapters(Backends::VULKAN))
}

pub(crate) fn facts(index: usize, adapter: &Adapter) -> AdapterFacts {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    AdapterFacts {
        index,
        name: info.name,
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .to_owned(),
        kind: match info.device_type {
            DeviceType::DiscreteGpu => AdapterKind::Discrete,
            DeviceType::IntegratedGpu => AdapterKind::Integrated,
            DeviceType::VirtualGpu => AdapterKind::Virtual,
            DeviceType::Cpu => AdapterKind::Software,
            DeviceType::Other => AdapterKind::Other,
        },
        buffer_bytes_max: limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size),
    }
}

/// What an answer of wgpu's holds: on a machine's own drivers all of them are there at once, or after a moment.
pub(crate) fn ready<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = answer.as_mut().poll(&mut context) {
            return value;
        }
        thread::yield_now();
    }
}
