// Maps keep half precision; sums are taken in single precision all the same. Any device can pack, whether or not it
// computes with halves.
alias Stored = vec2<u32>;

const LARGEST = 65504.0;

fn unpack(stored: Stored) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(stored.x), unpack2x16float(stored.y));
}

fn pack(value: vec4<f32>) -> Stored {
    let kept = clamp(value, vec4<f32>(-LARGEST), vec4<f32>(LARGEST));
    return vec2<u32>(pack2x16float(kept.xy), pack2x16float(kept.zw));
}
