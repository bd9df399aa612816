//! Surgery while loading: the executor computes each edited tensor, and the result replaces the stored one in the map.

use super::pages::PagePool;
use super::{Progress, WeightMap, WeightsError};
use crate::checkpoint::Dtype as Stored;
use crate::execute::{Executor, Report};
use crate::mlx::{Array, Dtype};
use crate::plan::{Plan, Program};

impl WeightMap<'_> {
    /// Runs a plan's programs and replaces the stored tensors by the results. Shapes and dtypes stay.
    ///
    /// # Errors
    /// A failure of the executor; the map is gone then.
    pub(crate) fn operate(
        mut self,
        plan: &Plan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Report), WeightsError> {
        let pool = PagePool::default();
        let mut executor = Executor::new(plan)?;
        let count = plan.programs().len();
        for (number, program) in plan.programs().iter().enumerate() {
            progress(Progress { operating: Some((number + 1, count)), ..self.progress });
            let array = run(&mut executor, program, &pool)?;
            self.replace(program, &array);
        }
        progress(self.progress);
        let report = executor.finish()?;
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
        // An edit of either side breaks the tie, unless the program edits both.
        self.ties
            .retain(|head, source| (head != key && source != key) || program.shared_with() == Some(head));
    }
}

fn run(executor: &mut Executor<'_>, program: &Program, pool: &PagePool) -> Result<Array, WeightsError> {
    let unsupported =
        || WeightsError::UnsupportedDtype { key: program.key().clone(), dtype: program.dtype() };
    let dtype = mlx_dtype(program.dtype()).ok_or_else(unsupported)?;
    let shape = super::take::mlx_shape(program.shape()).ok_or_else(unsupported)?;
    let bytes = program.shape().iter().product::<usize>() * program.dtype().bitsize() / 8;
    let mut pages = pool.take(bytes).map_err(|source| WeightsError::NoMemory {
        key: program.key().clone(),
        bytes,
        source,
    })?;
    executor.run(program, pages.as_mut())?;
    Ok(Array::from_owner(pages, &shape, dtype)?)
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
