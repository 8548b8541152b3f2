//! The names of Python's that a dictionary of weights is written with.

use super::kind::Kind;

/// A class or function that a pickle may name; none is ever called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildTensorV2,
    RebuildParameter,
    Storage(Kind),
}

impl Global {
    /// None for every other name there is.
    pub(crate) fn parse(module: &str, name: &str) -> Option<Self> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Self::OrderedDict,
            ("torch._utils", "_rebuild_tensor") => Self::RebuildTensor,
            ("torch._utils", "_rebuild_tensor_v2") => Self::RebuildTensorV2,
            ("torch._utils", "_rebuild_parameter") => Self::RebuildParameter,
            ("torch" | "torch.cuda", name) => {
                Self::Storage(storage_kind(name.strip_suffix("Storage")?)?)
            }
            _ => return None,
        })
    }
}

fn storage_kind(name: &str) -> Option<Kind> {
    Some(match name {
        "Double" => Kind::F64,
        "Float" => Kind::F32,
        "Half" => Kind::F16,
        "BFloat16" => Kind::Bf16,
        "Long" => Kind::Integer(8),
        "Int" => Kind::Integer(4),
        "Short" => Kind::Integer(2),
        "Char" | "Byte" | "Bool" => Kind::Integer(1),
        _ => return None,
    })
}
