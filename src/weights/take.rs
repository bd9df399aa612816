//! How a model takes tensors out of the map: by key, with the shape it needs. A tensor that is missing, misshapen or left
//! over is an error that names it, before MLX sees a wrong shape.

use std::collections::BTreeMap;

use super::map::same_shape;
use super::{Disagreement, Matrix, Policy, Progress, SharedWeights, WeightMap, WeightsError};
use crate::checkpoint::Key;
use crate::mlx::{self, Array, Dtype, Mode, Packed, Packing};

impl WeightMap<'_> {
    /// The same tensors for a trial. A model built from them proves that everything is there and fits, and has no other
    /// use: nothing is read or converted.
    #[must_use]
    pub(crate) fn trial(&self) -> WeightMap<'static> {
        WeightMap {
            tensors: self.tensors.clone(),
            ties: self.ties.clone(),
            stored_as: self.stored_as.clone(),
            tied: BTreeMap::new(),
            policy: Policy::native(),
            progress: self.progress,
            listener: None,
            shared: None,
        }
    }

    /// From here on every taken tensor is read, converted as the policy decides and evaluated at once; `listener`
    /// receives the progress.
    #[must_use]
    pub(crate) fn settling(self, policy: Policy, listener: &mut dyn FnMut(Progress)) -> WeightMap<'_> {
        let Self { tensors, ties, stored_as, tied, progress, .. } = self;
        WeightMap { tensors, ties, stored_as, tied, policy, progress, listener: Some(listener), shared: None }
    }

    /// As [`settling`](Self::settling), sharing unedited tensors with another model of this checkpoint.
    #[must_use]
    pub(crate) fn settling_beside<'p>(
        self,
        policy: Policy,
        listener: &'p mut dyn FnMut(Progress),
        shared: &'p mut SharedWeights,
    ) -> WeightMap<'p> {
        WeightMap { shared: Some(shared), ..self.settling(policy, listener) }
    }

    /// Whether a tensor is there and not taken yet.
    #[must_use]
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.tensors.contains_key(&Key::from(key))
    }

    /// Takes a vector of `len` elements.
    ///
    /// # Errors
    /// A tensor that is missing, or whose shape or dtype does not fit.
    pub(crate) fn vector(&mut self, key: &str, len: usize) -> Result<Array, WeightsError> {
        let (array, bytes) = self.remove(key)?;
        if !same_shape(&array, &[len]) {
            return Err(misfit(self.stored_name(key), &array, &[len]));
        }
        if !array.is_float() {
            return Err(not_float(self.stored_name(key), &array));
        }
        let array = self.policy.cast(&array)?;
        // If another model has it already, this one was never read.
        if let Some(kept) = self.shared.as_ref().and_then(|shared| shared.vector(key)) {
            self.settle(&[&kept], bytes)?;
            return Ok(kept);
        }
        self.settle(&[&array], bytes)?;
        let stored = self.stored_name(key).to_owned();
        if let Some(shared) = &mut self.shared {
            shared.keep_vector(key, &stored, &array);
        }
        Ok(array)
    }

    /// Takes the weight `[out, in]` of a module: packed if there is a `<module>.scales`, else dense. A module that is
    /// tied to another shares its memory.
    ///
    /// # Errors
    /// A tensor that is missing, or whose shape, dtype or packing does not fit.
    pub(crate) fn matrix(&mut self, module: &str, out: usize, input: usize) -> Result<Matrix, WeightsError> {
        let source = self.tied_module(module);
        let name = source.as_deref().unwrap_or(module);
        if let Some(matrix) = self.tied.get(name).cloned() {
            self.forget(module);
            return Ok(matrix);
        }
        let (stored, bytes) = self.stored_matrix(module, out, input)?;
        let matrix = stored.under(&self.policy)?;
        drop(stored);
        let matrix = self.settled(&[module.to_owned()], matrix, bytes)?;
        if source.is_some() || self.is_tied_to(module) {
            self.tied.insert(name.to_owned(), matrix.clone());
        }
        Ok(matrix)
    }

    /// Takes the weights `[out, in]` of several modules that read the same input as one matrix of stacked rows, which is
    /// faster; as several matrices if they are stored differently.
    ///
    /// # Errors
    /// A tensor that is missing, or whose shape, dtype or packing does not fit.
    pub(crate) fn stacked(
        &mut self,
        modules: &[(String, usize)],
        input: usize,
    ) -> Result<Vec<Matrix>, WeightsError> {
        let each = modules.iter().map(|(module, out)| self.stored_matrix(module, *out, input));
        let (parts, bytes): (Vec<Matrix>, Vec<u64>) =
            each.collect::<Result<Vec<_>, WeightsError>>()?.into_iter().unzip();
        // Stacked as stored and converted afterwards: codes are smaller than floats.
        let stack = Matrix::stacked(&parts)?;
        let stored = stack.map_or(parts, |one| vec![one]);
        let converted =
            stored.iter().map(|matrix| matrix.under(&self.policy)).collect::<mlx::Result<Vec<_>>>();
        let matrices = converted?;
        drop(stored);
        let names: Vec<String> = modules.iter().map(|(module, _)| module.clone()).collect();
        let mut bytes = bytes.iter().sum();
        let each = names.chunks(names.len().div_ceil(matrices.len().max(1)).max(1)).zip(matrices);
        each.map(|(names, matrix)| self.settled(names, matrix, std::mem::take(&mut bytes))).collect()
    }

    /// Takes the weights `[out, in]` of a layer's experts: from the module `stacked`, which holds all of them, if there is
    /// one, else from a module for each.
    ///
    /// # Errors
    /// A tensor that is missing, or whose shape, dtype or packing does not fit.
    pub(crate) fn experts(
        &mut self,
        stacked: &str,
        each: &[String],
        out: usize,
        input: usize,
    ) -> Result<Matrix, WeightsError> {
        let is_stacked = members(stacked).iter().any(|key| self.tensors.contains_key(key));
        let (stored, bytes) = if is_stacked {
            self.stored(stacked, &[each.len(), out], input)?
        } else {
            let taken = each.iter().map(|module| self.stored_matrix(module, out, input));
            let (parts, bytes): (Vec<Matrix>, Vec<u64>) =
                taken.collect::<Result<Vec<_>, WeightsError>>()?.into_iter().unzip();
            let rows = Matrix::stacked(&parts)?.ok_or_else(|| {
                let first = each.first().map_or(stacked, String::as_str);
                WeightsError::MixedExperts { first: first.to_owned() }
            })?;
            let count = mlx::int(each.len())?;
            (rows.split(count)?, bytes.iter().sum())
        };
        let matrix = stored.under(&self.policy)?;
        drop(stored);
        let names = [each, &[stacked.to_owned()]].concat();
        self.settled(&names, matrix, bytes)
    }

    /// Checks that only tensors that `ignorable` accepts are left.
    ///
    /// # Errors
    /// Tensors are left over.
    pub(crate) fn close(self, ignorable: impl Fn(&Key) -> bool) -> Result<(), WeightsError> {
        let left: Vec<&Key> = self.tensors.keys().filter(|key| !ignorable(key)).collect();
        let Some(first) = left.first() else { return Ok(()) };
        let first = self.stored_name(first.as_str()).to_owned();
        Err(WeightsError::LeftOver { first, others: left.len() - 1 })
    }

    /// Evaluates a taken tensor (or one made of taken ones), except in a trial.
    pub(crate) fn settle(&mut self, arrays: &[&Array], bytes: u64) -> Result<(), WeightsError> {
        if let Some(listener) = &mut self.listener {
            mlx::eval(arrays.iter().copied())?;
            self.progress.done += bytes;
            listener(self.progress);
        }
        Ok(())
    }

    /// Evaluates a matrix made of these modules. If another model has it already, takes that one, and this one is never
    /// read.
    fn settled(&mut self, modules: &[String], matrix: Matrix, bytes: u64) -> Result<Matrix, WeightsError> {
        if let Some(kept) = self.shared.as_ref().and_then(|shared| shared.matrix(modules)) {
            self.settle(&kept.arrays(), bytes)?;
            return Ok(kept);
        }
        self.settle(&matrix.arrays(), bytes)?;
        let members = modules.iter().flat_map(|module| members(module));
        let stored: Vec<Key> = members.map(|key| Key::from(self.stored_name(key.as_str()))).collect();
        if let Some(shared) = &mut self.shared {
            shared.keep_matrix(modules, &stored, &matrix);
        }
        Ok(matrix)
    }

    fn stored_matrix(
        &mut self,
        module: &str,
        out: usize,
        input: usize,
    ) -> Result<(Matrix, u64), WeightsError> {
        self.stored(module, &[out], input)
    }

    /// A weight `[rows…, in]` as it is stored, and its size in bytes.
    fn stored(&mut self, module: &str, rows: &[usize], input: usize) -> Result<(Matrix, u64), WeightsError> {
        let key = format!("{module}.weight");
        let (weight, bytes) = self.remove(&key)?;
        if !self.contains(&format!("{module}.scales")) {
            let shape = [rows, &[input]].concat();
            if !same_shape(&weight, &shape) {
                return Err(misfit(self.stored_name(&key), &weight, &shape));
            }
            if !weight.is_float() {
                return Err(not_float(self.stored_name(&key), &weight));
            }
            return Ok((Matrix::dense(weight)?, bytes));
        }
        let (scales, scales_bytes) = self.remove(&format!("{module}.scales"))?;
        let (biases, biases_bytes) = if scales.is_float() {
            let (biases, bytes) = self
                .remove(&format!("{module}.biases"))
                .map_err(|_| WeightsError::NoBiases { module: module.to_owned() })?;
            (Some(biases), bytes)
        } else {
            (None, 0)
        };
        let packing = packing(self.stored_name(&key), &weight, &scales, biases.as_ref(), rows, input)?;
        let matrix = Matrix::packed(Packed { codes: weight, scales, biases, packing });
        Ok((matrix, bytes + scales_bytes + biases_bytes))
    }

    fn remove(&mut self, key: &str) -> Result<(Array, u64), WeightsError> {
        self.tensors.remove(&Key::from(key)).ok_or_else(|| WeightsError::Missing { key: key.to_owned() })
    }

    /// Drops the remaining tensors of a module whose matrix is shared.
    fn forget(&mut self, module: &str) {
        for key in members(module) {
            self.tensors.remove(&key);
        }
    }

    /// The module that every weight tensor of this module is tied to.
    fn tied_module(&self, module: &str) -> Option<String> {
        let present: Vec<Key> =
            members(module).into_iter().filter(|key| self.tensors.contains_key(key)).collect();
        let sources: Option<Vec<&Key>> = present.iter().map(|key| self.ties.get(key)).collect();
        Some(sources?.first()?.stem().to_owned())
    }

    fn is_tied_to(&self, module: &str) -> bool {
        self.ties.values().any(|source| source.stem() == module)
    }
}

/// The tensors that a module may have.
fn members(module: &str) -> [Key; 3] {
    ["weight", "scales", "biases"].map(|member| Key::from(format!("{module}.{member}").as_str()))
}

/// Mode, bits and group size of a packed weight, derived from its shapes and the known width.
fn packing(
    key: &str,
    codes: &Array,
    scales: &Array,
    biases: Option<&Array>,
    rows: &[usize],
    input: usize,
) -> Result<Packing, WeightsError> {
    let module = key.strip_suffix(".weight").unwrap_or(key);
    let refuse = |disagreement| Err(WeightsError::Packing { module: module.to_owned(), disagreement });
    let width = |array: &Array| {
        let (columns, above) = array.shape().split_last()?;
        let fits =
            above.len() == rows.len() && above.iter().zip(rows).all(|(&a, &b)| usize::try_from(a) == Ok(b));
        usize::try_from(*columns).ok().filter(|_| fits)
    };
    let (Some(words), Some(groups)) = (width(codes), width(scales)) else {
        return refuse(Disagreement::Shapes {
            codes: codes.shape().to_vec(),
            scales: scales.shape().to_vec(),
            weight: [rows, &[input]].concat(),
        });
    };
    if let Some(biases) = biases.filter(|biases| biases.shape() != scales.shape() || !biases.is_float()) {
        return refuse(Disagreement::Biases { scales: format!("{scales:?}"), biases: format!("{biases:?}") });
    }
    let group_size = input.checked_div(groups).filter(|size| size * groups == input);
    let bits = (words * 32).checked_div(input).filter(|bits| bits * input == words * 32);
    let narrow = |n: Option<usize>| n.and_then(|n| i32::try_from(n).ok());
    let known = match (narrow(bits), narrow(group_size), biases) {
        (Some(bits @ (2 | 3 | 4 | 5 | 6 | 8)), Some(group_size @ (32 | 64 | 128)), Some(_)) => {
            Some(Packing { mode: Mode::Affine, bits, group_size })
        }
        (Some(bits), Some(group_size), None) if scales.dtype() == Dtype::Uint8 => {
            Mode::of_floats(bits, group_size).map(|mode| Packing { mode, bits, group_size })
        }
        _ => None,
    };
    match known.filter(|_| codes.dtype() == Dtype::Uint32) {
        Some(packing) => Ok(packing),
        None => refuse(Disagreement::Format {
            codes: format!("{codes:?}"),
            scales: format!("{scales:?}"),
            width: input,
        }),
    }
}

/// Dimensions as MLX counts them.
pub(super) fn mlx_shape(shape: &[usize]) -> Option<Vec<i32>> {
    shape.iter().map(|&n| i32::try_from(n).ok()).collect()
}

fn misfit(key: &str, array: &Array, wanted: &[usize]) -> WeightsError {
    WeightsError::Shape { key: key.to_owned(), found: array.shape().to_vec(), wanted: wanted.to_vec() }
}

fn not_float(key: &str, array: &Array) -> WeightsError {
    WeightsError::NotFloat { key: key.to_owned(), dtype: array.dtype() }
}
