//! Typed indices: a donor, a step and an operation are never taken for each other, or for a tensor.

/// Declares an index type.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(usize);

        impl $name {
            /// The one at a position, from 0.
            #[must_use]
            pub const fn new(position: usize) -> Self {
                Self(position)
            }

            /// Its position, from 0.
            #[must_use]
            pub const fn position(self) -> usize {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

index! {
    /// A donor, by its position in `Plan::donors`.
    DonorId
}

index! {
    /// A step, by its position in `Plan::steps`.
    StepId
}

index! {
    /// An operation, by its place in the surgery file. Operations with mistakes count.
    OperationId
}
