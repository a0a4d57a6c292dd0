//! Walks a serialisable value and refuses floats that are not finite, which a JSON writer would turn into `null`.
//!
//! It writes nothing; it exists because `serde_json` offers no strict mode.

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant,
};

/// Says why the value cannot be written; `Ok` when every float in it is finite.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), String> {
    value.serialize(Walk).map_err(|Fault(why)| why)
}

struct Walk;

#[derive(Debug)]
struct Fault(String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: std::fmt::Display>(msg: T) -> Self {
        Self(msg.to_string())
    }
}

fn finite(value: f64) -> Result<(), Fault> {
    if value.is_finite() { Ok(()) } else { Err(Fault(format!("{value} is not a JSON number"))) }
}

macro_rules! accept {
    ($($name:ident: $ty:ty),* $(,)?) => { $(fn $name(self, _: $ty) -> Result<(), Fault> { Ok(()) })* };
}

impl ser::Serializer for Walk {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    accept!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str);

    fn serialize_f32(self, v: f32) -> Result<(), Fault> {
        finite(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Result<(), Fault> {
        finite(v)
    }
    fn serialize_none(self) -> Result<(), Fault> {
        Ok(())
    }
    fn serialize_unit(self) -> Result<(), Fault> {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Fault> {
        v.serialize(self)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Fault> {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result<(), Fault> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        v: &T,
    ) -> Result<(), Fault> {
        v.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
}

macro_rules! walk_each {
    ($($trait:ident :: $method:ident),* $(,)?) => { $(
        impl $trait for Walk {
            type Ok = ();
            type Error = Fault;
            fn $method<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Fault> {
                v.serialize(Walk)
            }
            fn end(self) -> Result<(), Fault> {
                Ok(())
            }
        }
    )* };
}
walk_each!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
);

macro_rules! walk_fields {
    ($($trait:ident),* $(,)?) => { $(
        impl $trait for Walk {
            type Ok = ();
            type Error = Fault;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, v: &T) -> Result<(), Fault> {
                v.serialize(Walk)
            }
            fn end(self) -> Result<(), Fault> {
                Ok(())
            }
        }
    )* };
}
walk_fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Walk {
    type Ok = ();
    type Error = Fault;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, k: &T) -> Result<(), Fault> {
        k.serialize(Walk)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Fault> {
        v.serialize(Walk)
    }
    fn end(self) -> Result<(), Fault> {
        Ok(())
    }
}
