//! The GPU as the engine's device: the networks that ran last stay on it, their conditions folded in.

use std::{
    ops::ControlFlow,
    sync::{Arc, PoisonError},
};

use upscale_core::{Condition, Rows};
use upscale_engine::{Device, DeviceError, DeviceWork};

use crate::{
    error::GpuError,
    gpu::Gpu,
    run::{Program, upscale},
};

/// A picture with alpha runs two networks, and the next picture may have another condition.
const KEPT: usize = 3;

/// Networks on the device, the one that ran last at the end.
#[derive(Default)]
pub(crate) struct Programs(Vec<(u64, Condition, Arc<Program>)>);

impl Programs {
    fn get(&mut self, gpu: &Gpu, work: &DeviceWork<'_>) -> Result<Arc<Program>, GpuError> {
        let condition = match work.network.is_conditioned() {
            true => work.condition,
            false => Condition::UNKNOWN,
        };
        let name = work.network.fingerprint();
        let known = self
            .0
            .iter()
            .position(|(of, at, _)| (*of, *at) == (name, condition));
        let program = match known {
            Some(index) => self.0.remove(index).2,
            None => Arc::new(Program::new(
                gpu,
                work.network.folded(condition).into_owned(),
            )?),
        };
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((name, condition, Arc::clone(&program)));
        Ok(program)
    }
}

impl Device for Gpu {
    fn upscale(
        &self,
        work: &DeviceWork<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), DeviceError> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let program = programs.get(self, work);
        let done =
            program.and_then(|program| upscale(self, &program, work.source, sink, cancelled));
        done.map_err(|error| match error {
            GpuError::Cancelled => DeviceError::Cancelled,
            GpuError::Unfit(_) => DeviceError::Refused(error.to_string()),
            other => DeviceError::Failed(other.to_string()),
        })
    }
}
