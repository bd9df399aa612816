//! Everything that is seen from outside: one binary, one module a topic.

mod sparse;
