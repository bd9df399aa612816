//! Reads a header in the form that writers use (no escapes, each field once) and declines everything else, valid or not:
//! the strict reader then takes it and reports what is wrong. A property test compares the two.

use serde::de::IntoDeserializer;
use serde::de::{Deserialize, value};

use super::super::StoredTensor;
use super::super::{Dtype, Key};
use super::strict::{MAX_DIMENSIONS, Metadata, Pairs};
use super::validate;

/// Reads the tensors in the order of the text, their ranges relative to the data, and `__metadata__`.
pub(super) fn read(text: &str) -> Option<(Vec<StoredTensor>, Metadata)> {
    let mut reader = Reader { text, at: 0, dtype: ("F32", Dtype::F32), shape: Vec::new() };
    // An entry is rarely shorter than 100 bytes. The guess must not let a small file allocate much memory.
    let mut tensors = Vec::with_capacity(text.len() / 100);
    let mut metadata = None;
    reader.expect(b'{')?;
    loop {
        let name = reader.string()?;
        reader.expect(b':')?;
        if name != "__metadata__" {
            tensors.push(reader.tensor(name)?);
        } else if metadata.is_none() {
            metadata = Some(reader.metadata()?);
        } else {
            return None;
        }
        if !reader.another()? {
            break;
        }
    }
    reader.skip_space();
    (reader.at == text.len()).then(|| (tensors, metadata.flatten()))
}

#[derive(Clone, Copy)]
enum Field {
    Dtype,
    Shape,
    Offsets,
}

struct Reader<'t> {
    text: &'t str,
    /// Position of the next byte.
    at: usize,
    /// The last dtype and its spelling: most tensors have the dtype of the one before.
    dtype: (&'t str, Dtype),
    /// Buffer for the shape of the current tensor.
    shape: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The next byte that is not a space.
    fn next(&mut self) -> Option<u8> {
        self.skip_space();
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Whether another member of the object follows.
    fn another(&mut self) -> Option<bool> {
        match self.next()? {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'t str> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..)?;
        let end = memchr::memchr(b'"', rest.as_bytes())?;
        let string = rest.get(..end)?;
        // Without an early exit, so that the compiler can vectorize it.
        let unusual = string.bytes().map(|byte| u8::from(byte < b' ' || byte == b'\\')).fold(0, u8::max);
        self.at += end + 1;
        (unusual == 0).then_some(string)
    }

    /// The name of a tensor's field.
    fn field(&mut self) -> Option<Field> {
        self.skip_space();
        let rest = self.text.as_bytes().get(self.at..)?;
        let (field, length) = match rest {
            [b'"', b'd', b't', b'y', b'p', b'e', b'"', ..] => (Field::Dtype, 7),
            [b'"', b's', b'h', b'a', b'p', b'e', b'"', ..] => (Field::Shape, 7),
            _ if rest.starts_with(b"\"data_offsets\"") => (Field::Offsets, 14),
            _ => return None,
        };
        self.at += length;
        Some(field)
    }

    /// A whole number of at most 19 digits.
    fn number(&mut self) -> Option<u64> {
        self.skip_space();
        let digits = self.text.as_bytes().get(self.at..)?;
        let mut number: u64 = 0;
        let mut length = 0;
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            length += 1;
        }
        // Nineteen digits do not overflow. JSON allows no leading zeros.
        let plain = (1..=19).contains(&length) && (length == 1 || digits.first() != Some(&b'0'));
        self.at += length;
        plain.then_some(number)
    }

    fn metadata(&mut self) -> Option<Metadata> {
        let mut values = serde_json::Deserializer::from_str(self.text.get(self.at..)?).into_iter();
        let pairs: Option<Pairs> = values.next()?.ok()?;
        if pairs.as_ref().is_some_and(|pairs| pairs.twice().is_some()) {
            return None;
        }
        self.at += values.byte_offset();
        Some(pairs.map(|pairs| pairs.0))
    }

    fn tensor(&mut self, name: &str) -> Option<StoredTensor> {
        let (mut dtype, mut has_shape, mut offsets) = (None, false, None);
        self.expect(b'{')?;
        loop {
            let field = self.field()?;
            self.expect(b':')?;
            match field {
                Field::Dtype if dtype.is_none() => dtype = Some(self.dtype()?),
                Field::Shape if !has_shape => {
                    self.shape()?;
                    has_shape = true;
                }
                Field::Offsets if offsets.is_none() => {
                    self.expect(b'[')?;
                    let start = self.number()?;
                    self.expect(b',')?;
                    offsets = Some((start, self.number()?));
                    self.expect(b']')?;
                }
                _ => return None,
            }
            if !self.another()? {
                break;
            }
        }
        let shape = has_shape.then_some(&*self.shape);
        let (dtype, range) = validate::check(name, dtype, shape, offsets).ok()?;
        Some(StoredTensor { key: Key::from(name), dtype, shape: self.shape.clone(), range })
    }

    fn dtype(&mut self) -> Option<Dtype> {
        self.skip_space();
        let (last, dtype) = self.dtype;
        if let Some(rest) = self.text.get(self.at..)?.strip_prefix('"')
            && let Some(rest) = rest.strip_prefix(last)
            && rest.starts_with('"')
        {
            self.at += last.len() + 2;
            return Some(dtype);
        }
        let text = self.string()?;
        let known = Dtype::deserialize(IntoDeserializer::<value::Error>::into_deserializer(text));
        self.dtype = (text, known.ok()?);
        Some(self.dtype.1)
    }

    /// Reads into `self.shape`.
    fn shape(&mut self) -> Option<()> {
        self.shape.clear();
        self.expect(b'[')?;
        self.skip_space();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            let number = self.number()?;
            self.shape.push(validate::dimension(number)?);
            match self.next()? {
                b',' if self.shape.len() < MAX_DIMENSIONS => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }
}
