// Maps keep single precision.
alias Stored = vec4<f32>;

fn unpack(stored: Stored) -> vec4<f32> {
    return stored;
}

fn pack(value: vec4<f32>) -> Stored {
    return value;
}
