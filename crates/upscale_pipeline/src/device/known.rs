//! The networks that children run, by their fingerprints: what a device's process runs, and nothing else.

use std::{collections::HashMap, sync::Arc};

use upscale_core::{Compression, Condition, Estimate, Look, Scale};
use upscale_engine::{Engine, EngineOptions, Network};

use crate::models::{ChildModels, ModelPaths, ModelsError};

/// Networks by [`Network::fingerprint`].
#[derive(Debug, Default)]
pub struct KnownNetworks(HashMap<u64, Arc<Network>>);

impl KnownNetworks {
    /// Those that ship in this look, and the models that are handed over.
    ///
    /// # Errors
    /// When a model is not there or is none, or no weights have this look.
    pub fn load(look: Look, paths: ModelPaths) -> Result<Self, ModelsError> {
        let mut known = Self::default();
        let engine = Engine::shipped(EngineOptions {
            look,
            ..EngineOptions::default()
        })?;
        let noisy = Estimate {
            noise: Estimate::NOISE_MAX,
            ..Estimate::NONE
        };
        let noisy = Condition {
            compression: Compression::Unknown,
            estimate: Some(noisy),
        };
        for scale in Scale::ALL {
            for condition in [Condition::CLEAN, noisy] {
                known.add(Arc::new(engine.network_for(scale, condition).clone()));
            }
        }
        let models = ChildModels::open(paths)?;
        for scale in Scale::ALL {
            models
                .read(scale)?
                .into_iter()
                .for_each(|network| known.add(network));
        }
        models
            .read_restoring()?
            .into_iter()
            .for_each(|network| known.add(network));
        Ok(known)
    }

    /// One more.
    pub fn add(&mut self, network: Arc<Network>) {
        self.0.insert(network.fingerprint(), network);
    }

    pub(super) fn find(&self, fingerprint: u64) -> Option<&Arc<Network>> {
        self.0.get(&fingerprint)
    }
}
