//! The text half of an ncnn model, `.param`: one line a layer, with its blobs and its parameters. Only what stands there
//! is read here; what it means is `graph.rs`'s question.

use std::collections::BTreeMap;

use crate::error::{ModelError, refuse};

/// First line of every file of this kind.
const MAGIC: &str = "7767517";
/// ESRGAN with 23 blocks has 116 KB.
const BYTES_MAX: usize = 4 << 20;
/// ESRGAN with 23 blocks has 999 layers and 1,782 blobs.
const LAYERS_MAX: usize = 8_192;
const BLOBS_MAX: usize = 32_768;
/// Blobs that a layer reads or writes; a split of ESRGAN has 8.
const LAYER_BLOBS_MAX: usize = 64;
/// Parameters of a layer, and numbers of one that is a list.
const PARAMETERS_MAX: usize = 64;
/// Longest name of a layer, of its type or of a blob, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Lists stand under this number less their own.
const LIST: i64 = -23_300;

/// A layer as its line tells it; blobs are numbered in the order in which they are first written.
pub(super) struct Line<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    parameters: BTreeMap<i64, Vec<f64>>,
}

/// All layers of a file, and how many blobs they write.
pub(super) struct Text<'a> {
    pub(super) lines: Vec<Line<'a>>,
    pub(super) blobs: usize,
}

impl<'a> Text<'a> {
    /// Reads the whole text.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ModelError> {
        if bytes.len() > BYTES_MAX {
            let size = bytes.len();
            return Err(refuse(format!(
                "a .param of {size} bytes, at most {BYTES_MAX}"
            )));
        }
        let text = str::from_utf8(bytes).map_err(|_| refuse("the .param is not UTF-8"))?;
        let mut rows = text.lines().filter(|row| !row.trim().is_empty());
        if rows.next().map(str::trim) != Some(MAGIC) {
            return Err(refuse(format!(
                "the .param does not begin with {MAGIC}: it is no text of ncnn's"
            )));
        }
        let (layers, blobs_max) = counts(rows.next().unwrap_or_default())?;
        let mut blobs = BTreeMap::new();
        let mut lines = Vec::new();
        for row in rows {
            if lines.len() == layers {
                return Err(refuse(format!(
                    "the .param has more layers than the {layers} that it announces"
                )));
            }
            lines.push(line(row, &mut blobs)?);
            if blobs.len() > blobs_max {
                return Err(refuse(format!(
                    "the .param has more blobs than the {blobs_max} that it announces"
                )));
            }
        }
        if lines.len() < layers {
            let given = lines.len();
            return Err(refuse(format!(
                "the .param announces {layers} layers and has {given}"
            )));
        }
        Ok(Self {
            lines,
            blobs: blobs.len(),
        })
    }
}

/// The second line: layers and blobs.
fn counts(row: &str) -> Result<(usize, usize), ModelError> {
    let numbers: Vec<_> = row.split_whitespace().map(str::parse::<usize>).collect();
    let &[Ok(layers), Ok(blobs)] = &numbers[..] else {
        return Err(refuse("the .param's second line is not two numbers"));
    };
    if layers == 0 || layers > LAYERS_MAX || blobs > BLOBS_MAX {
        return Err(refuse(format!(
            "the .param announces {layers} layers and {blobs} blobs, at most {LAYERS_MAX} and {BLOBS_MAX}"
        )));
    }
    Ok((layers, blobs))
}

/// Type, name, how many blobs are read and written, these, and then parameters.
fn line<'a>(row: &'a str, blobs: &mut BTreeMap<&'a str, usize>) -> Result<Line<'a>, ModelError> {
    let mut words = row.split_whitespace();
    let mut word = || {
        let word = words.next().ok_or_else(|| {
            let shown: String = row.chars().take(40).collect();
            refuse(format!("the layer {shown:?} ends too early"))
        })?;
        if word.len() > NAME_BYTES_MAX {
            let bytes = word.len();
            return Err(refuse(format!(
                "a name of the .param has {bytes} bytes, at most {NAME_BYTES_MAX}"
            )));
        }
        Ok(word)
    };
    let (kind, name) = (word()?, word()?);
    let count = |word: &str| match word.parse::<usize>() {
        Ok(count) if count <= LAYER_BLOBS_MAX => Ok(count),
        _ => Err(refuse(format!(
            "{kind} {name} has {word} blobs, at most {LAYER_BLOBS_MAX}"
        ))),
    };
    let (read, written) = (count(word()?)?, count(word()?)?);
    let mut reads = Vec::with_capacity(read);
    for _ in 0..read {
        let blob = word()?;
        let found = blobs.get(blob).ok_or_else(|| {
            refuse(format!(
                "{kind} {name} reads {blob}, which no layer before it writes"
            ))
        })?;
        reads.push(*found);
    }
    let mut writes = Vec::with_capacity(written);
    for _ in 0..written {
        let (blob, next) = (word()?, blobs.len());
        if blobs.insert(blob, next).is_some() {
            return Err(refuse(format!("two layers write the blob {blob}")));
        }
        writes.push(next);
    }
    let parameters = parameters(words, kind, name)?;
    Ok(Line {
        kind,
        name,
        reads,
        writes,
        parameters,
    })
}

/// `id=value`, `id=value,value`, or `-23300-id=count,value,value`.
fn parameters<'a>(
    words: impl Iterator<Item = &'a str>,
    kind: &str,
    name: &str,
) -> Result<BTreeMap<i64, Vec<f64>>, ModelError> {
    let mut parameters = BTreeMap::new();
    for word in words {
        let unknown = || {
            let shown: String = word.chars().take(40).collect();
            refuse(format!(
                "{kind} {name} has the parameter {shown:?}, which is none"
            ))
        };
        let (id, values) = word.split_once('=').ok_or_else(unknown)?;
        let id: i64 = id.parse().map_err(|_| unknown())?;
        let mut numbers = Vec::new();
        for value in values.split(',').filter(|value| !value.is_empty()) {
            let number: f64 = value.parse().map_err(|_| unknown())?;
            if !number.is_finite() || numbers.len() > PARAMETERS_MAX {
                return Err(unknown());
            }
            numbers.push(number);
        }
        let id = if id <= LIST {
            if numbers.is_empty() || numbers.remove(0) != numbers.len() as f64 {
                return Err(unknown());
            }
            LIST - id
        } else {
            id
        };
        if parameters.len() == PARAMETERS_MAX || parameters.insert(id, numbers).is_some() {
            return Err(unknown());
        }
    }
    Ok(parameters)
}

/// Hints about shapes and a mask of features: they change no number.
const HINTS: [i64; 2] = [30, 31];

impl Line<'_> {
    /// How the layer is called in messages.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// A whole number, or its default.
    pub(super) fn whole(&self, id: i64, default: i64) -> Result<i64, ModelError> {
        let value = self.number(id, default as f64)?;
        if value.fract() == 0.0 && value.abs() < 1e9 {
            return Ok(value as i64);
        }
        Err(self.wrong(id, &format!("{value}, no whole number")))
    }

    /// A number, or its default.
    pub(super) fn number(&self, id: i64, default: f64) -> Result<f64, ModelError> {
        match self.parameters.get(&id).map(Vec::as_slice) {
            None => Ok(default),
            Some(&[value]) => Ok(value),
            Some(list) => Err(self.wrong(id, &format!("a list of {}", list.len()))),
        }
    }

    /// A list, or nothing.
    pub(super) fn list(&self, id: i64) -> &[f64] {
        self.parameters.get(&id).map_or(&[], Vec::as_slice)
    }

    /// No parameter but these.
    pub(super) fn check_known(&self, known: &[i64]) -> Result<(), ModelError> {
        let mut ids = self.parameters.keys();
        match ids.find(|id| !known.contains(id) && !HINTS.contains(id)) {
            None => Ok(()),
            Some(id) => Err(refuse(format!(
                "{} has the parameter {id}, which is not known here",
                self.shown()
            ))),
        }
    }

    /// A parameter that has one value only, here and in its default.
    pub(super) fn check_is(&self, id: i64, wanted: i64) -> Result<(), ModelError> {
        match self.whole(id, wanted)? {
            value if value == wanted => Ok(()),
            value => Err(self.wrong(id, &format!("{value}, only {wanted} is supported"))),
        }
    }

    /// That parameter `id` is something else than it may be.
    pub(super) fn wrong(&self, id: i64, found: &str) -> ModelError {
        refuse(format!("parameter {id} of {} is {found}", self.shown()))
    }
}
