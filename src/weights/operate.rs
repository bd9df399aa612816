//! Surgery on the way into memory: each edited tensor is computed by the executor and takes its place in the map.

use super::pages::PagePool;
use super::{Progress, WeightMap, broken};
use crate::checkpoint::Dtype as Stored;
use crate::diagnostic::{Code, Diagnostic};
use crate::execute::{Executor, Report};
use crate::mlx::{Array, Dtype};
use crate::plan::{Plan, Program};

impl WeightMap<'_> {
    /// Runs a plan's programs and puts their results in the place of the stored tensors. Shapes and dtypes stay.
    ///
    /// # Errors
    /// What the executor says; the map is gone then.
    pub fn operate(
        mut self,
        plan: &Plan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Report), Diagnostic> {
        let pool = PagePool::default();
        let mut executor = Executor::new(plan).map_err(|error| Diagnostic::from(&error))?;
        let count = plan.programs().len();
        for (number, program) in plan.programs().iter().enumerate() {
            progress(Progress { operating: Some((number + 1, count)), ..self.progress });
            let array = run(&mut executor, program, &pool)?;
            self.replace(program, &array);
        }
        progress(self.progress);
        let report = executor.finish().map_err(|error| Diagnostic::from(&error))?;
        Ok((self, report))
    }

    fn replace(&mut self, program: &Program, array: &Array) {
        let key = program.key();
        if let Some((_, bytes)) = self.tensors.insert(key.clone(), (array.clone(), 0)) {
            self.progress.done += bytes;
        }
        if let Some(head) = program.shared_with() {
            self.tensors.insert(head.clone(), (array.clone(), 0));
        }
        // A tie that this edit does not keep is broken, on whichever side the edit is.
        self.ties
            .retain(|head, source| (head != key && source != key) || program.shared_with() == Some(head));
    }
}

fn run(executor: &mut Executor<'_>, program: &Program, pool: &PagePool) -> Result<Array, Diagnostic> {
    let unsupported = || {
        let message =
            format!("`{}` ({:?}) is of a dtype that MLX does not have", program.key(), program.dtype());
        Diagnostic::new(Code::ModelUnreadable, message)
    };
    let dtype = mlx_dtype(program.dtype()).ok_or_else(unsupported)?;
    let shape = super::take::mlx_shape(program.shape()).ok_or_else(unsupported)?;
    let bytes = program.shape().iter().product::<usize>() * program.dtype().bitsize() / 8;
    let mut pages = pool.take(bytes).map_err(|error| {
        let message = format!("no memory for `{}` ({bytes} bytes): {error}", program.key());
        Diagnostic::new(Code::ModelUnreadable, message)
    })?;
    executor.run(program, pages.as_mut()).map_err(|error| Diagnostic::from(&error))?;
    Array::from_owner(pages, &shape, dtype).map_err(|error| broken(&error))
}

/// MLX's name for a stored dtype.
fn mlx_dtype(dtype: Stored) -> Option<Dtype> {
    Some(match dtype {
        Stored::F16 => Dtype::Float16,
        Stored::BF16 => Dtype::Bfloat16,
        Stored::F32 => Dtype::Float32,
        Stored::BOOL => Dtype::Bool,
        Stored::U8 => Dtype::Uint8,
        Stored::U16 => Dtype::Uint16,
        Stored::U32 => Dtype::Uint32,
        Stored::U64 => Dtype::Uint64,
        Stored::I8 => Dtype::Int8,
        Stored::I16 => Dtype::Int16,
        Stored::I32 => Dtype::Int32,
        Stored::I64 => Dtype::Int64,
        _ => return None,
    })
}
