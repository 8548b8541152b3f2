//! The models that a child runs in place of our own networks, open before its sandbox closes.

use std::{
    fs::File,
    io::{self, Read},
    mem::ManuallyDrop,
    path::PathBuf,
    sync::Arc,
};

use upscale_core::Scale;
use upscale_engine::{Model, ModelError, Network};

/// Where the model of each scale lies, if there is one.
#[derive(Debug, Clone, Default)]
pub struct ModelPaths {
    /// Model of 1x that restores a picture before it is enlarged; none: nothing does.
    pub x1: Option<ModelPath>,
    /// Model for 2x; none: our own network.
    pub x2: Option<ModelPath>,
    /// Model for 4x; none: our own network.
    pub x4: Option<ModelPath>,
}

/// Where a model lies.
#[derive(Debug, Clone)]
pub struct ModelPath {
    /// Its file.
    pub file: PathBuf,
    /// What [`Network::find_ranges`] found of it; none: the child finds it for every image, at the cost of 5,760 pixels.
    pub ranges: Option<PathBuf>,
}

/// Why a model that the service keeps cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The parent has none there, or it cannot be read.
    #[error("the model that the service keeps: {0}")]
    Io(#[from] io::Error),
    /// It was a model when the service started.
    #[error("the model that the service keeps: {0}")]
    NoModel(#[from] ModelError),
}

/// Models that are open.
#[derive(Debug)]
pub(crate) struct ChildModels {
    x1: Option<OpenModel>,
    x2: Option<OpenModel>,
    x4: Option<OpenModel>,
}

#[derive(Debug)]
struct OpenModel {
    file: OpenFile,
    ranges: Option<OpenFile>,
}

/// Its size is asked for in time: in the sandbox no one may ask. And it is never closed: a debug build would ask first
/// whether the descriptor is open, by a call that the sandbox forbids.
#[derive(Debug)]
struct OpenFile {
    file: ManuallyDrop<File>,
    bytes: u64,
}

impl OpenModel {
    fn open(path: ModelPath) -> io::Result<Self> {
        Ok(Self {
            file: OpenFile::open(path.file)?,
            ranges: path.ranges.map(OpenFile::open).transpose()?,
        })
    }

    fn read(&self) -> Result<Arc<Network>, ModelsError> {
        let network = Model::read(&self.file.read()?)?.network;
        Ok(Arc::new(match &self.ranges {
            Some(ranges) => network.with_ranges(&ranges.read()?)?,
            None => network,
        }))
    }
}

impl OpenFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            file: ManuallyDrop::new(file),
            bytes,
        })
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let bytes = usize::try_from(self.bytes).map_err(io::Error::other)?;
        let mut read = Vec::with_capacity(bytes);
        (&*self.file).take(self.bytes).read_to_end(&mut read)?;
        Ok(read)
    }
}

impl ChildModels {
    /// Opens them; they are looked at in the sandbox.
    ///
    /// # Errors
    /// When the parent has none there.
    pub(crate) fn open(paths: ModelPaths) -> Result<Self, ModelsError> {
        Ok(Self {
            x1: paths.x1.map(OpenModel::open).transpose()?,
            x2: paths.x2.map(OpenModel::open).transpose()?,
            x4: paths.x4.map(OpenModel::open).transpose()?,
        })
    }

    /// The network for this scale, if one was handed over.
    ///
    /// # Errors
    /// When the bytes are no model: they were one when the service started.
    pub(crate) fn read(&self, scale: Scale) -> Result<Option<Arc<Network>>, ModelsError> {
        let file = match scale {
            Scale::X2 => &self.x2,
            Scale::X4 => &self.x4,
        };
        file.as_ref().map(OpenModel::read).transpose()
    }

    /// The network that restores, if one was handed over.
    ///
    /// # Errors
    /// As [`ChildModels::read`].
    pub(crate) fn read_restoring(&self) -> Result<Option<Arc<Network>>, ModelsError> {
        self.x1.as_ref().map(OpenModel::read).transpose()
    }
}
