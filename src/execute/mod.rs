//! Doing it, on host memory, with rayon. No MLX, no policy: the plan says everything.
