//! Writes state dictionaries as `torch.save` does: the same opcodes, the same containers.

use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};

/// A tensor to be saved.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
    /// PyTorch's name of the type: `Float`, `Half` and so on.
    pub(super) kind: &'static str,
    pub(super) channels_last: bool,
}

impl Saved {
    pub(super) fn new(name: String, shape: Vec<usize>, values: &[f32]) -> Self {
        Self {
            name,
            shape,
            values: values.to_vec(),
            kind: "Float",
            channels_last: false,
        }
    }

    fn strides(&self) -> Vec<usize> {
        if self.channels_last {
            let [_, c, h, w] = self.shape[..] else {
                panic!("channels last of {:?}", self.shape);
            };
            return vec![c * h * w, 1, w * c, c];
        }
        let mut strides = vec![1; self.shape.len()];
        for i in (1..self.shape.len()).rev() {
            strides[i - 1] = strides[i] * self.shape[i];
        }
        strides
    }

    fn bytes(&self) -> Vec<u8> {
        let mut values = self.values.clone();
        if self.channels_last {
            let (strides, area) = (self.strides(), self.shape[2] * self.shape[3]);
            for (at, &value) in self.values.iter().enumerate() {
                let (o, i, tap) = (
                    at / (self.shape[1] * area),
                    at / area % self.shape[1],
                    at % area,
                );
                let place = o * strides[0] + i + tap * self.shape[1];
                values[place] = value;
            }
        }
        let bytes = values.iter().map(|&value| match self.kind {
            "Double" => f64::from(value).to_le_bytes().to_vec(),
            "Half" => f16::from_f32(value).to_le_bytes().to_vec(),
            "BFloat16" => bf16::from_f32(value).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        });
        bytes.flatten().collect()
    }
}

/// The opcodes of one pickle.
#[derive(Default)]
pub(super) struct Opcodes(pub(super) Vec<u8>);

impl Opcodes {
    pub(super) fn begin() -> Self {
        Self(vec![0x80, 2])
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.raw(b"X")
            .raw(&(text.len() as u32).to_le_bytes())
            .raw(text.as_bytes())
    }

    pub(super) fn int(&mut self, number: usize) -> &mut Self {
        self.raw(b"J").raw(&(number as u32).to_le_bytes())
    }

    pub(super) fn ints(&mut self, numbers: &[usize]) -> &mut Self {
        self.raw(b"(");
        for &number in numbers {
            self.int(number);
        }
        self.raw(b"t")
    }

    pub(super) fn name(&mut self, module: &str, name: &str) -> &mut Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    /// A tensor by its storage's key.
    pub(super) fn tensor(&mut self, tensor: &Saved, key: usize, is_legacy: bool) -> &mut Self {
        self.name("torch._utils", "_rebuild_tensor_v2")
            .raw(b"((")
            .text("storage");
        self.name("torch", &format!("{}Storage", tensor.kind));
        self.text(&key.to_string())
            .text("cpu")
            .int(tensor.values.len());
        self.raw(if is_legacy { b"Nt" } else { b"t" })
            .raw(b"Q")
            .int(0);
        self.ints(&tensor.shape)
            .ints(&tensor.strides())
            .raw(&[0x89]);
        self.name("collections", "OrderedDict").raw(b")RtR")
    }

    /// An ordered dictionary of tensors whose storages' keys begin at `first`.
    pub(super) fn dict(&mut self, tensors: &[Saved], first: usize, is_legacy: bool) -> &mut Self {
        self.name("collections", "OrderedDict").raw(b")Rq\x00(");
        for (key, tensor) in tensors.iter().enumerate() {
            self.text(&tensor.name)
                .tensor(tensor, first + key, is_legacy);
        }
        // PyTorch's own state: a dictionary of versions.
        self.raw(b"u}").text("_metadata").raw(b"}sb")
    }

    pub(super) fn end(&mut self) -> Vec<u8> {
        self.raw(b".").0.clone()
    }
}

fn wrapped(tensors: &[Saved], wrappers: &[&str], is_legacy: bool) -> Vec<u8> {
    let mut opcodes = Opcodes::begin();
    for wrapper in wrappers {
        opcodes
            .raw(b"}")
            .text("epoch")
            .int(7)
            .raw(b"s")
            .text(wrapper);
    }
    opcodes.dict(tensors, 0, is_legacy);
    for _ in wrappers {
        opcodes.raw(b"s");
    }
    opcodes.end()
}

pub(super) fn zip(tensors: &[Saved], wrappers: &[&str]) -> Vec<u8> {
    zip_around(&wrapped(tensors, wrappers, false), tensors)
}

pub(super) fn zip_of_sets(sets: &[(&str, Vec<Saved>)]) -> Vec<u8> {
    let mut opcodes = Opcodes::begin();
    opcodes.raw(b"}(");
    let mut all = Vec::new();
    for (wrapper, tensors) in sets {
        opcodes.text(wrapper).dict(tensors, all.len(), false);
        all.extend_from_slice(tensors);
    }
    zip_around(&opcodes.raw(b"u").end(), &all)
}

/// An archive of a pickle and the tensors' bytes.
pub(super) fn zip_around(pickle: &[u8], tensors: &[Saved]) -> Vec<u8> {
    let mut entries = vec![("archive/data.pkl".to_owned(), pickle.to_vec())];
    entries.push(("archive/byteorder".to_owned(), b"little".to_vec()));
    for (key, tensor) in tensors.iter().enumerate() {
        entries.push((format!("archive/data/{key}"), tensor.bytes()));
    }
    archive(&entries)
}

/// A zip archive of stored entries, each with PyTorch's padding before its bytes.
pub(super) fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let place = file.len() as u32;
        let size = bytes.len() as u32;
        let crc = crc32fast::hash(bytes);
        let sums = [crc, size, size].map(u32::to_le_bytes).concat();
        file.extend_from_slice(b"PK\x03\x04");
        file.extend_from_slice(&[0; 10]);
        file.extend_from_slice(&sums);
        file.extend_from_slice(&(name.len() as u16).to_le_bytes());
        file.extend_from_slice(&6_u16.to_le_bytes());
        file.extend_from_slice(name.as_bytes());
        file.extend_from_slice(b"FB\x02\x00ZZ");
        file.extend_from_slice(bytes);
        directory.extend_from_slice(b"PK\x01\x02");
        directory.extend_from_slice(&[0; 12]);
        directory.extend_from_slice(&sums);
        directory.extend_from_slice(&(name.len() as u16).to_le_bytes());
        directory.extend_from_slice(&[0; 12]);
        directory.extend_from_slice(&place.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let place = file.len() as u32;
    file.extend_from_slice(&directory);
    file.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    file.extend_from_slice(&[(entries.len() as u16).to_le_bytes(); 2].concat());
    file.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    file.extend_from_slice(&place.to_le_bytes());
    file.extend_from_slice(&[0; 2]);
    file
}

pub(super) fn legacy(tensors: &[Saved], wrappers: &[&str]) -> Vec<u8> {
    legacy_around(&wrapped(tensors, wrappers, true), tensors)
}

pub(super) fn legacy_around(pickle: &[u8], tensors: &[Saved]) -> Vec<u8> {
    let mut file = super::super::legacy::MAGIC.to_vec();
    file.extend(Opcodes::begin().raw(b"M\xe9\x03").end());
    let mut machine = Opcodes::begin();
    file.extend(machine.raw(b"}").text("little_endian").raw(b"\x88s").end());
    file.extend_from_slice(pickle);
    let mut keys = Opcodes::begin();
    keys.raw(b"](");
    for key in 0..tensors.len() {
        keys.text(&key.to_string());
    }
    file.extend(keys.raw(b"e").end());
    for tensor in tensors {
        file.extend_from_slice(&(tensor.values.len() as u64).to_le_bytes());
        file.extend(tensor.bytes());
    }
    file
}

pub(super) fn safetensors(tensors: &[Saved]) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(Saved::bytes).collect();
    let views = tensors.iter().zip(&bytes).map(|(tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).unwrap();
        (tensor.name.as_str(), view)
    });
    let pt = [("format".to_owned(), "pt".to_owned())].into();
    safetensors::serialize(views, Some(pt)).unwrap()
}
