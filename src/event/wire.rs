//! Bytes from the kernel to [`super::Event`]s: the only place that looks at raw memory.
