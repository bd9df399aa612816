//! The facade of MLX: the only module that names `mlx_rs` and `mlx_sys`.
//!
//! [`Array`] offers the operations that weights and models need. They are lazy: nothing is computed before [`eval`] or a
//! host read. Every failure is an [`Error`]. Nothing here panics on shapes, but MLX kernels end the process on some of
//! them, so callers check shapes first.
//!
//! An unevaluated array belongs to the thread that made it; an evaluated one may move to another.

#![expect(unsafe_code, reason = "mlx-rs wraps neither the hand-over of memory nor plain slices")]

mod ops;
mod packed;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod sgemm;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Once;

pub(crate) use mlx_rs::Dtype;
use mlx_rs::Stream;
pub(crate) use packed::{Mode, Packed, Packing};

/// A failure of MLX, or of a check before a call of MLX.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// The error of a check before a call of MLX.
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

/// A result of this module.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Where MLX computes by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    Cpu,
    /// An Apple GPU.
    Gpu,
}

/// The keys that a query may see.
#[derive(Debug, Clone)]
pub enum Mask {
    /// All keys.
    Full,
    /// Keys up to the query's own position; the last query is at the last key.
    Causal,
    /// Keys where this is true: bool `[queries, keys]`.
    Allowed(Array),
}

/// An n-dimensional array of MLX, lazy until evaluated. Cloning shares it.
#[derive(Clone)]
pub struct Array(mlx_rs::Array);

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.dtype(), self.shape())
    }
}

// ---------------------------------------------------------------- making arrays

impl Array {
    /// Copies f32 values. Their number must be that of the shape.
    pub fn from_f32(values: &[f32], shape: &[i32]) -> Result<Self> {
        checked_len(values.len(), shape)?;
        Ok(Self(mlx_rs::Array::from_slice(values, shape)))
    }

    /// Copies u32 values. Their number must be that of the shape.
    pub fn from_u32(values: &[u32], shape: &[i32]) -> Result<Self> {
        checked_len(values.len(), shape)?;
        Ok(Self(mlx_rs::Array::from_slice(values, shape)))
    }

    /// A scalar.
    pub fn scalar(value: f32) -> Self {
        Self(mlx_rs::Array::from_f32(value))
    }

    /// Zeros.
    pub fn zeros(shape: &[i32], dtype: Dtype) -> Result<Self> {
        lift(mlx_rs::ops::zeros_dtype(shape, dtype))
    }

    /// The i32 numbers `start..end`.
    pub fn range(start: i32, end: i32) -> Result<Self> {
        op(|out, stream| {
            // SAFETY: `out` and `stream` are live handles.
            unsafe { mlx_sys::mlx_arange(out, start.into(), end.into(), 1.0, Dtype::Int32.into(), stream) }
        })
    }

    /// Hands memory over: it begins with the array's row-major little-endian bytes.
    ///
    /// Where MLX can use foreign memory (Apple GPUs, page-aligned buffers) nothing is copied, and the owner is dropped with
    /// the array. Elsewhere MLX copies the bytes and drops the owner at once.
    pub fn from_owner<T: AsMut<[u8]> + Send + 'static>(
        owner: T,
        shape: &[i32],
        dtype: Dtype,
    ) -> Result<Self> {
        /// Called once by MLX when it no longer needs the memory.
        unsafe extern "C" fn release<T>(payload: *mut c_void) {
            // SAFETY: the payload is the box leaked below, and MLX calls back exactly once.
            drop(unsafe { Box::from_raw(payload.cast::<T>()) });
        }

        let mut owner = Box::new(owner);
        let memory = (*owner).as_mut();
        let count = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
        if count.and_then(|n| n.checked_mul(size_of(dtype))).is_none_or(|needed| needed > memory.len()) {
            return Err(Error(format!("{} bytes cannot be {dtype:?} {shape:?}", memory.len())));
        }
        let rank = int(shape.len())?;
        prepare();
        let data = memory.as_mut_ptr().cast::<c_void>();
        let payload = Box::into_raw(owner).cast::<c_void>();
        // SAFETY: `data` holds at least as many bytes as shape and dtype say (checked above) and stays valid and
        // unaliased until `release` drops the box that owns it.
        let handle = unsafe {
            mlx_sys::mlx_array_new_data_managed_payload(
                data,
                shape.as_ptr(),
                rank,
                dtype.into(),
                payload,
                Some(release::<T>),
            )
        };
        if handle.ctx.is_null() {
            return Err(last_error("handing memory over"));
        }
        // SAFETY: a fresh handle, which only this function owns.
        Ok(Self(unsafe { mlx_rs::Array::from_ptr(handle) }))
    }
}

/// A size as MLX's integer type.
pub(crate) fn int(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error(format!("{n} is too large for an array")))
}

/// Every tensor of a safetensors file, lazily: bytes are read when a tensor is evaluated.
pub(crate) fn load_safetensors(path: &Path) -> Result<HashMap<String, Array>> {
    prepare();
    let loaded = mlx_rs::Array::load_safetensors(path).map_err(|error| match error {
        mlx_rs::error::IoError::Exception(exception) => exception.into(),
        other => Error(other.to_string()),
    })?;
    Ok(loaded.into_iter().map(|(name, array)| (name, Array(array))).collect())
}

// ---------------------------------------------------------------- looking at arrays

impl Array {
    /// Its dimensions, outermost first.
    pub fn shape(&self) -> &[i32] {
        self.0.shape()
    }

    /// One dimension; 0 for an axis that does not exist.
    pub fn dim(&self, axis: usize) -> i32 {
        self.shape().get(axis).copied().unwrap_or(0)
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.0.dtype()
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.0.nbytes()
    }

    /// Whether its elements are F16, BF16 or F32.
    pub fn is_float(&self) -> bool {
        matches!(self.dtype(), Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32)
    }

    /// Evaluates, and copies the elements as f32 in row-major order.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        if self.0.size() == 0 {
            return Ok(Vec::new());
        }
        let plain = lift(lift(self.0.as_dtype(Dtype::Float32))?.0.contiguous())?;
        plain.0.to_vec_exact().map_err(|error| Error(error.to_string()))
    }

    /// Evaluates, and copies the elements as u32 in row-major order.
    pub fn to_u32(&self) -> Result<Vec<u32>> {
        if self.0.size() == 0 {
            return Ok(Vec::new());
        }
        let plain = lift(lift(self.0.as_dtype(Dtype::Uint32))?.0.contiguous())?;
        plain.0.to_vec_exact().map_err(|error| Error(error.to_string()))
    }
}

/// Computes these arrays and waits for them.
pub(crate) fn eval<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<()> {
    mlx_rs::transforms::eval(arrays.into_iter().map(|array| &array.0)).map_err(Error::from)
}

/// Starts computing these arrays and returns at once.
pub(crate) fn async_eval<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<()> {
    mlx_rs::transforms::async_eval(arrays.into_iter().map(|array| &array.0)).map_err(Error::from)
}

// ---------------------------------------------------------------- device and memory

/// Where MLX computes by default: the GPU where there is one.
pub(crate) fn device() -> Device {
    let kind = mlx_rs::Device::try_default().and_then(|device| device.get_type());
    if matches!(kind, Ok(mlx_rs::DeviceType::Gpu)) { Device::Gpu } else { Device::Cpu }
}

/// Peak memory of MLX in bytes.
pub(crate) fn peak_memory() -> Result<usize> {
    mlx_rs::memory::peak_memory().map_err(Error::from)
}

// ---------------------------------------------------------------- errors

thread_local! {
    /// The last message of MLX on this thread: its C interface reports messages apart from the status.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl From<mlx_rs::error::Exception> for Error {
    fn from(exception: mlx_rs::error::Exception) -> Self {
        let said = LAST.with(|last| last.borrow_mut().take());
        Self(said.unwrap_or_else(|| without_place(exception.what()).to_owned()))
    }
}

/// Takes over the error messages of MLX's C interface, whose own handler ends the process.
fn prepare() {
    /// Called by MLX, on the thread that made the failing call.
    unsafe extern "C" fn note(message: *const c_char, _data: *mut c_void) {
        // SAFETY: MLX passes a NUL-terminated string that lives during the call.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
        LAST.with(|last| *last.borrow_mut() = Some(without_place(&message).to_owned()));
    }

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // mlx-rs installs its handler at its first call, which therefore has to come before ours. A failure recurs at the
        // next call.
        drop(mlx_rs::memory::active_memory());
        // SAFETY: `note` lives as long as the program and needs no data.
        unsafe { mlx_sys::mlx_set_error_handler(Some(note), std::ptr::null_mut(), None) };
    });
}

/// The message without the source location that MLX's C interface appends.
fn without_place(message: &str) -> &str {
    match message.rsplit_once(" at ") {
        Some((said, place))
            if place.rsplit_once(':').is_some_and(|(_, line)| line.bytes().all(|b| b.is_ascii_digit())) =>
        {
            said
        }
        _ => message,
    }
}

fn last_error(doing: &str) -> Error {
    Error(LAST.with(|last| last.borrow_mut().take()).unwrap_or_else(|| format!("{doing} failed")))
}

fn lift(result: mlx_rs::error::Result<mlx_rs::Array>) -> Result<Array> {
    Ok(Array(result?))
}

/// One call of MLX's C interface that makes an array.
fn op(call: impl FnOnce(*mut mlx_sys::mlx_array, mlx_sys::mlx_stream) -> c_int) -> Result<Array> {
    prepare();
    let stream = Stream::thread_local_or_default();
    // SAFETY: makes an empty handle.
    let mut handle = unsafe { mlx_sys::mlx_array_new() };
    let status = call(&raw mut handle, stream.as_ptr());
    // SAFETY: the handle holds a fresh array (or is empty), which only this function owns.
    let array = Array(unsafe { mlx_rs::Array::from_ptr(handle) });
    if status == 0 { Ok(array) } else { Err(last_error("an operation")) }
}

fn size_of(dtype: Dtype) -> usize {
    // SAFETY: a pure function of the dtype.
    unsafe { mlx_sys::mlx_dtype_size(dtype.into()) }
}

fn checked_len(len: usize, shape: &[i32]) -> Result<()> {
    let count = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
    if count == Some(len) { Ok(()) } else { Err(Error(format!("{len} values cannot be {shape:?}"))) }
}

#[cfg(test)]
mod tests;
