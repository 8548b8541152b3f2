//! What a statement's `$1` may be: the words of core and plain values, as the three kinds of columns hold them.

use upscale_core::{Credits, Email, Id, Timestamp, TokenHash};

/// The parameters of a statement, in the order of their numbers.
pub(crate) type Params<'a> = &'a [&'a dyn Param];

/// A parameter as a driver takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Number(i64),
    /// 0 or 1 where the column is a number.
    Flag(bool),
    Text(&'a str),
    /// Of PostgreSQL alone.
    Texts(&'a [&'a str]),
    /// Of PostgreSQL alone.
    Numbers(&'a [i64]),
}

/// What can be a parameter.
pub(crate) trait Param: Sync {
    fn value(&self) -> Value<'_>;
}

impl<T: Param + ?Sized> Param for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Param> Param for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::value)
    }
}

impl Param for i64 {
    fn value(&self) -> Value<'_> {
        Value::Number(*self)
    }
}

impl Param for u32 {
    fn value(&self) -> Value<'_> {
        Value::Number((*self).into())
    }
}

impl Param for bool {
    fn value(&self) -> Value<'_> {
        Value::Flag(*self)
    }
}

impl Param for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Param for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Param for [&str] {
    fn value(&self) -> Value<'_> {
        Value::Texts(self)
    }
}

impl Param for [i64] {
    fn value(&self) -> Value<'_> {
        Value::Numbers(self)
    }
}

impl Param for Timestamp {
    fn value(&self) -> Value<'_> {
        Value::Number(self.micros())
    }
}

impl Param for Credits {
    fn value(&self) -> Value<'_> {
        Value::Number(self.thousandths())
    }
}

impl<const PREFIX: u32> Param for Id<PREFIX> {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

impl Param for TokenHash {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

impl Param for Email {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}
