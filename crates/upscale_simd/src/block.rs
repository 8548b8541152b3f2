//! What a kernel of the matrix product is given: addresses that its caller has checked.

/// Arguments of one kernel call.
pub struct Block {
    pub(crate) input: *const f32,
    pub(crate) input_stride: usize,
    pub(crate) weights: *const f32,
    pub(crate) depth: usize,
    pub(crate) output: *mut f32,
    pub(crate) output_stride: usize,
    /// Null: zero.
    pub(crate) start: *const f32,
    /// 0 when every row begins with the same numbers.
    pub(crate) start_stride: usize,
    /// What will be read soon: a line of it is asked for with every step in depth.
    pub(crate) next: *const f32,
    /// What will be read or written a little later: a line with every step, or every other one in single precision,
    /// whose products are twice as many steps.
    pub(crate) ahead: *const f32,
}
