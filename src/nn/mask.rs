//! The keys that a query may see.

use crate::mlx::{Array, Mask, Result};

/// Number of positions that a layer sees, its own included; `None` is all.
pub(crate) type Window = Option<usize>;

/// The mask of the last `queries` of `keys` positions.
pub(super) fn mask(queries: i32, keys: i32, window: Window) -> Result<Mask> {
    let window = window.and_then(|window| i32::try_from(window).ok()).filter(|&window| window < keys);
    match window {
        _ if queries == 1 => Ok(Mask::Full),
        None => Ok(Mask::Causal),
        Some(window) => {
            let query = Array::range(keys - queries, keys)?.reshape(&[queries, 1])?;
            let key = Array::range(0, keys)?.reshape(&[1, keys])?;
            let oldest = Array::range(keys - queries - window, keys - window)?.reshape(&[queries, 1])?;
            Ok(Mask::Allowed(key.less_or_equal(&query)?.and(&oldest.less(&key)?)?))
        }
    }
}

impl Mask {
    /// The mask as bool `[queries, keys]`; `None` if everything is visible.
    pub(super) fn allowed(&self, queries: i32, keys: i32) -> Result<Option<Array>> {
        match self {
            Self::Full => Ok(None),
            Self::Allowed(allowed) => Ok(Some(allowed.clone())),
            Self::Causal => {
                let query = Array::range(keys - queries, keys)?.reshape(&[queries, 1])?;
                let key = Array::range(0, keys)?.reshape(&[1, keys])?;
                Ok(Some(key.less_or_equal(&query)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allowed pairs as `x` and `.`, a word for each query.
    fn drawn(mask: &Mask) -> String {
        let Some(allowed) = mask.allowed(3, 4).unwrap() else { return format!("{mask:?}") };
        let width = usize::try_from(allowed.dim(1)).unwrap();
        let cells: Vec<char> =
            allowed.to_u32().unwrap().iter().map(|&cell| if cell == 1 { 'x' } else { '.' }).collect();
        cells.chunks(width).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_window_counts_its_own_position() {
        assert_eq!(drawn(&mask(3, 5, Some(2)).unwrap()), ".xx.. ..xx. ...xx");
        assert_eq!(drawn(&mask(4, 4, Some(3)).unwrap()), "x... xx.. xxx. .xxx");
    }

    #[test]
    fn a_window_that_reaches_everything_is_none() {
        assert!(matches!(mask(3, 3, Some(3)).unwrap(), Mask::Causal));
        assert!(matches!(mask(3, 5, None).unwrap(), Mask::Causal));
        assert!(matches!(mask(1, 5, Some(2)).unwrap(), Mask::Full));
    }

    #[test]
    fn a_causal_mask_ends_at_the_last_key() {
        assert_eq!(drawn(&Mask::Causal), "xx.. xxx. xxxx");
    }
}
