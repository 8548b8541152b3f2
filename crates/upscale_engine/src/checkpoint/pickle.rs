//! A pickle, read without Python: a machine that knows the opcodes and the names that dictionaries of weights are
//! written with. A pickle is a program; this machine calls nothing, refuses every other name and opcode by its name,
//! and bounds its memory by the number of steps: a step makes at most one value and copies none.

use std::collections::HashMap;

use super::bytes::{Bytes, text};
use super::global::Global;
use super::kind::Kind;
use super::limits::{DIMENSIONS_MAX, NAME_BYTES_MAX};
use crate::error::{ModelError, refuse};

/// Steps of one pickle. A dictionary of 702 tensors takes some 20,000; half a million values take 40 MB.
pub(super) const STEPS_MAX: usize = 1 << 19;

/// Index of a value of a pickle.
type Id = usize;

/// A value, with other values by their indices: what is named twice stays one.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// A float, or an integer of more than eight bytes: nothing that anyone asks for.
    Number,
    Text(&'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Storage(Storage<'a>),
    Tensor(View<'a>),
}

/// Numbers in a file, by the key under which the container keeps them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a str,
    /// First number and how many there are.
    pub(crate) start: usize,
    pub(crate) count: usize,
}

/// A tensor: numbers of a storage, from `offset` on.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) storage: Storage<'a>,
    pub(crate) offset: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

/// What the container knows under persistent ids.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Persistent {
    /// Nothing: the pickle may have none.
    None,
    /// The id itself describes a storage.
    Storages,
}

/// A pickle that was read.
pub(crate) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    pub(crate) root: Id,
    /// Bytes up to its end.
    pub(crate) length: usize,
}

impl<'a> Pickle<'a> {
    pub(crate) fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id]
    }

    /// A value of the root, if that is a dictionary with this key.
    pub(crate) fn find(&self, key: &str) -> Option<&Value<'a>> {
        let Value::Dict(items) = self.value(self.root) else {
            return None;
        };
        let is_it =
            |&&(k, _): &&(Id, Id)| matches!(self.value(k), Value::Text(text) if *text == key);
        items
            .iter()
            .find(is_it)
            .map(|&(_, value)| self.value(value))
    }

    /// All storages that it names.
    pub(crate) fn storages(&self) -> impl Iterator<Item = Storage<'a>> {
        self.values.iter().filter_map(|value| match value {
            Value::Storage(storage) => Some(*storage),
            _ => None,
        })
    }
}

impl Value<'_> {
    /// What it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Number => "number",
            Self::Text(_) => "text",
            Self::Tuple(_) => "tuple",
            Self::List(_) => "list",
            Self::Dict(_) => "dictionary",
            Self::Global(_) => "class or function",
            Self::Storage(_) => "storage",
            Self::Tensor(_) => "tensor",
        }
    }
}

/// Reads the pickle at the beginning of `bytes`.
///
/// # Errors
/// [`ModelError`] with the first thing that a dictionary of weights has no need of.
pub(crate) fn read<'a>(bytes: &'a [u8], persistent: Persistent) -> Result<Pickle<'a>, ModelError> {
    let mut machine = Machine {
        bytes: Bytes::new(bytes),
        persistent,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    for _ in 0..STEPS_MAX {
        let opcode = machine.bytes.byte()?;
        if opcode == b'.' {
            let root = machine.pop()?;
            return Ok(Pickle {
                length: bytes.len() - machine.bytes.rest.len(),
                values: machine.values,
                root,
            });
        }
        machine.step(opcode)?;
    }
    Err(refuse(format!("a pickle of more than {STEPS_MAX} steps")))
}

struct Machine<'a> {
    bytes: Bytes<'a>,
    persistent: Persistent,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<usize, Id>,
}

impl<'a> Machine<'a> {
    fn step(&mut self, opcode: u8) -> Result<(), ModelError> {
        match opcode {
            0x80 => self.bytes.take(1).map(|_| ()),
            0x95 => self.bytes.take(8).map(|_| ()),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'q' | b'r' | 0x94 => self.memorize(opcode),
            b'h' | b'j' => self.recall(opcode),
            b'a' | b'e' | b's' | b'u' => self.fill(opcode),
            b'c' | 0x93 => self.name(opcode),
            b'R' => self.call(),
            b'b' => self.build(),
            b'Q' => self.resolve(),
            b't' | 0x85..=0x87 => self.tuple(opcode),
            _ => {
                let value = self.constant(opcode)?;
                self.push(value);
                Ok(())
            }
        }
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id, ModelError> {
        // What lies below a mark belongs to the value that the mark began.
        let floor = self.marks.last().copied().unwrap_or(0);
        let popped = (self.stack.len() > floor)
            .then(|| self.stack.pop())
            .flatten();
        popped.ok_or_else(|| refuse("a pickle that takes more than it has put"))
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, ModelError> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| refuse("a pickle that ends what it has not begun"))?;
        Ok(self.stack.split_off(mark))
    }

    /// Values that need no other value.
    fn constant(&mut self, opcode: u8) -> Result<Value<'a>, ModelError> {
        let bytes = &mut self.bytes;
        Ok(match opcode {
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(bytes.byte()?.into()),
            b'M' => Value::Int(bytes.u16()? as i64),
            b'J' => Value::Int(i32::from_le_bytes(bytes.array()?).into()),
            0x8a => {
                let length = bytes.byte()?;
                long(bytes.take(length.into())?)
            }
            b'G' => bytes.take(8).map(|_| Value::Number)?,
            b'U' | 0x8c => {
                let length = bytes.byte()?;
                Value::Text(text(bytes.take(length.into())?)?)
            }
            b'T' | b'X' => {
                let length = bytes.u32()?;
                Value::Text(text(bytes.take(length)?)?)
            }
            b')' => Value::Tuple(Vec::new()),
            b']' => Value::List(Vec::new()),
            b'}' => Value::Dict(Vec::new()),
            other => {
                return Err(refuse(format!(
                    "the pickle has opcode {other:#04x}, which no dictionary of weights needs"
                )));
            }
        })
    }

    fn memorize(&mut self, opcode: u8) -> Result<(), ModelError> {
        let key = match opcode {
            b'q' => self.bytes.byte()?.into(),
            b'r' => self.bytes.u32()?,
            _ => self.memo.len(),
        };
        let top = self.pop()?;
        self.stack.push(top);
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, opcode: u8) -> Result<(), ModelError> {
        let key = match opcode {
            b'h' => self.bytes.byte()?.into(),
            _ => self.bytes.u32()?,
        };
        let id = self.memo.get(&key).copied();
        self.stack
            .push(id.ok_or_else(|| refuse(format!("the pickle has no value {key}")))?);
        Ok(())
    }

    /// Values into the list or dictionary below them.
    fn fill(&mut self, opcode: u8) -> Result<(), ModelError> {
        let mut new = match opcode {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.pop_mark()?,
        };
        let top = self.pop()?;
        self.stack.push(top);
        match (&mut self.values[top], opcode) {
            (Value::List(list), b'a' | b'e') => list.append(&mut new),
            (Value::Dict(dict), b's' | b'u') if new.len().is_multiple_of(2) => {
                dict.extend(new.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            (other, _) => {
                let kind = other.kind();
                return Err(refuse(format!("a pickle that fills a {kind}")));
            }
        }
        Ok(())
    }

    fn tuple(&mut self, opcode: u8) -> Result<(), ModelError> {
        let items = match opcode {
            b't' => self.pop_mark()?,
            _ => {
                let mut items = Vec::new();
                for _ in 0x85..=opcode {
                    items.push(self.pop()?);
                }
                items.reverse();
                items
            }
        };
        self.push(Value::Tuple(items));
        Ok(())
    }

    fn name(&mut self, opcode: u8) -> Result<(), ModelError> {
        let (module, name) = if opcode == b'c' {
            (
                self.bytes.line(NAME_BYTES_MAX)?,
                self.bytes.line(NAME_BYTES_MAX)?,
            )
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            match (&self.values[module], &self.values[name]) {
                (&Value::Text(module), &Value::Text(name)) => (module, name),
                _ => return Err(refuse("the pickle names something by what is no text")),
            }
        };
        let global = Global::parse(module, name).ok_or_else(|| {
            let shown: String = format!("{module}.{name}").chars().take(80).collect();
            refuse(format!(
                "the pickle names {shown:?}, which weights do not need; save the state_dict alone"
            ))
        })?;
        self.push(Value::Global(global));
        Ok(())
    }

    /// The four calls that make tensors and dictionaries; each is done here.
    fn call(&mut self) -> Result<(), ModelError> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        let (Value::Tuple(arguments), Value::Global(global)) =
            (&self.values[arguments], &self.values[callee])
        else {
            return Err(refuse("the pickle calls what is no function"));
        };
        let value = match (global, arguments.as_slice()) {
            (Global::OrderedDict, []) => Value::Dict(Vec::new()),
            (Global::OrderedDict, &[pairs]) => self.dict_of_pairs(pairs)?,
            (Global::RebuildTensorV2, &[storage, offset, shape, strides, _, _])
            | (Global::RebuildTensorV2, &[storage, offset, shape, strides, _, _, _])
            | (Global::RebuildTensor, &[storage, offset, shape, strides]) => {
                Value::Tensor(self.view(storage, offset, shape, strides)?)
            }
            (Global::RebuildParameter, &[tensor, ..]) => self.values[tensor].clone(),
            (global, arguments) => {
                let count = arguments.len();
                return Err(refuse(format!(
                    "the pickle calls {global:?} with {count} arguments"
                )));
            }
        };
        self.push(value);
        Ok(())
    }

    /// Python 2 wrote an OrderedDict as a list of pairs.
    fn dict_of_pairs(&self, pairs: Id) -> Result<Value<'a>, ModelError> {
        let wrong = || refuse("an OrderedDict of something else than pairs");
        let Value::List(pairs) = &self.values[pairs] else {
            return Err(wrong());
        };
        let pairs = pairs.iter().map(|&pair| match &self.values[pair] {
            Value::List(pair) | Value::Tuple(pair) if pair.len() == 2 => Ok((pair[0], pair[1])),
            _ => Err(wrong()),
        });
        pairs.collect::<Result<_, _>>().map(Value::Dict)
    }

    fn view(
        &self,
        storage: Id,
        offset: Id,
        shape: Id,
        strides: Id,
    ) -> Result<View<'a>, ModelError> {
        let Value::Storage(storage) = self.values[storage] else {
            return Err(refuse("a tensor without a storage"));
        };
        Ok(View {
            storage,
            offset: self.count(offset)?,
            shape: self.counts(shape)?,
            strides: self.counts(strides)?,
        })
    }

    fn count(&self, id: Id) -> Result<usize, ModelError> {
        match self.values[id] {
            Value::Int(number) => {
                usize::try_from(number).map_err(|_| refuse(format!("{number} is no count")))
            }
            ref other => Err(refuse(format!("a {} is no count", other.kind()))),
        }
    }

    fn counts(&self, id: Id) -> Result<Vec<usize>, ModelError> {
        match &self.values[id] {
            Value::Tuple(ids) if ids.len() <= DIMENSIONS_MAX => {
                ids.iter().map(|&id| self.count(id)).collect()
            }
            other => Err(refuse(format!("a {} is no shape", other.kind()))),
        }
    }

    /// The state of an OrderedDict (`_metadata`) is dropped; nothing else may have one.
    fn build(&mut self) -> Result<(), ModelError> {
        self.pop()?;
        let top = self.pop()?;
        self.stack.push(top);
        match &self.values[top] {
            Value::Dict(_) => Ok(()),
            other => Err(refuse(format!(
                "the pickle sets the state of a {}",
                other.kind()
            ))),
        }
    }

    /// A persistent id becomes what the container keeps under it.
    fn resolve(&mut self) -> Result<(), ModelError> {
        let id = self.pop()?;
        let value = match (self.persistent, &self.values[id]) {
            (Persistent::Storages, Value::Tuple(fields)) => Value::Storage(self.storage(fields)?),
            (_, other) => {
                let kind = other.kind();
                return Err(refuse(format!(
                    "a {kind} is no persistent id of this container"
                )));
            }
        };
        self.push(value);
        Ok(())
    }

    /// `("storage", type, key, device, count)`, in legacy files with a view of another storage or None.
    fn storage(&self, fields: &[Id]) -> Result<Storage<'a>, ModelError> {
        let values: Vec<&Value<'a>> = fields.iter().map(|&id| &self.values[id]).collect();
        let (kind, key) = match values[..] {
            [
                &Value::Text("storage"),
                &Value::Global(Global::Storage(kind)),
                &Value::Text(key),
                _,
                _,
                ..,
            ] => (kind, key),
            _ => return Err(refuse("a persistent id that is no storage")),
        };
        let whole = Storage {
            kind,
            key,
            start: 0,
            count: self.count(fields[4])?,
        };
        match values[5..] {
            [] | [&Value::None] => Ok(whole),
            [Value::Tuple(view)] if view.len() == 3 => Ok(Storage {
                start: self.count(view[1])?,
                count: self.count(view[2])?,
                ..whole
            }),
            _ => Err(refuse("a storage that is a view of something unknown")),
        }
    }
}

/// A number of up to eight bytes, two's complement; a longer one stands for nothing here.
fn long(bytes: &[u8]) -> Value<'static> {
    if bytes.len() > 8 {
        return Value::Number;
    }
    let is_negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(wide))
}
