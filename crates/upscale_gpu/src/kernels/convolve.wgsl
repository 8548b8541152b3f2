// One convolution of SIDE x SIDE over maps side by side, its activation and what joins it. A workgroup makes EDGE x EDGE
// pixels of 4 * OUT channels; each invocation a run of RUN pixels of them. Four channels of the inputs at a time stand in
// workgroup memory. Every sum is taken in the same order whatever the tile: the bits are the same.
// Before this text come SIDE, OUT and how maps are stored.

const EDGE = 16u;
const RUN = 4u;
const INVOCATIONS = EDGE / RUN * EDGE;
const WINDOW = EDGE + SIDE - 1u;
const REACH = i32(SIDE / 2u);

// Where a map, or the part of it that there is, lies in the arena: rows of `width` pixels of `columns` times four
// channels, the first one at `x`, `y` of the map. Every pixel is read as `repeat` x `repeat` of them, where `parts` is 4
// as those of this map and the three after it: left and right, then the two below.
struct Location {
    offset: u32,
    columns: u32,
    x: i32,
    y: i32,
    width: u32,
    repeat: u32,
    parts: u32,
    spare: u32,
}

struct Join {
    place: Location,
    kind: u32,
    scale: f32,
    spare_a: u32,
    spare_b: u32,
}

struct Layer {
    // First column and row that are made, and how many.
    region: vec4<i32>,
    // Columns and rows of the whole output map: beyond them all inputs are zero.
    extent: vec2<i32>,
    // Inputs; four that are read as one count once.
    input_count: u32,
    join_count: u32,
    // Where these stand, in vectors of four.
    weights: u32,
    bias: u32,
    slopes: u32,
    activation: u32,
    output: Location,
    inputs: array<Location, INPUTS_MAX>,
    joins: array<Join, JOINS_MAX>,
}

@group(0) @binding(0) var<storage, read_write> arena: array<Stored>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> layer: Layer;

var<workgroup> window: array<vec4<f32>, WINDOW * WINDOW>;

fn index_of(place: Location, at: vec2<i32>) -> u32 {
    let inside = vec2<u32>(at - vec2<i32>(place.x, place.y));
    return place.offset + (inside.y * place.width + inside.x) * place.columns;
}

// Zero beyond the picture, and where nothing that is kept looks.
fn padded(index: u32, at: vec2<i32>, column: u32) -> vec4<f32> {
    let end = min(layer.extent, layer.region.xy + layer.region.zw + vec2<i32>(REACH));
    if any(at < vec2<i32>(0)) || any(at >= end) {
        return vec4<f32>();
    }
    var part = index;
    if layer.inputs[index].parts == 4u {
        part += u32(at.y % 2 * 2 + at.x % 2);
    }
    let input = layer.inputs[part];
    return unpack(arena[index_of(input, at / i32(input.repeat)) + column]);
}

fn sigmoid(value: vec4<f32>) -> vec4<f32> {
    return 1.0 / (1.0 + exp(-value));
}

fn activated(value: vec4<f32>, column: u32) -> vec4<f32> {
    switch layer.activation {
        case 1u: {
            return max(value, vec4<f32>());
        }
        case 2u: {
            return select(value, value * weights[layer.slopes + column], value < vec4<f32>());
        }
        case 3u: {
            return value * sigmoid(value);
        }
        case 4u: {
            let s = sigmoid(value);
            return value * (s * (2.0 - s) / ((1.0 - s) * (1.0 - s) + 1.0));
        }
        default: {
            return value;
        }
    }
}

fn joined(value: vec4<f32>, at: vec2<i32>, column: u32) -> vec4<f32> {
    var sum = value;
    for (var i = 0u; i < layer.join_count; i++) {
        let join = layer.joins[i];
        let other = unpack(arena[index_of(join.place, at) + column]);
        if join.kind == 0u {
            sum = sum * join.scale + other;
        } else {
            sum = (sum + other) * (sigmoid(sum) - 0.5);
        }
    }
    return sum;
}

// A vector of output channels of a run of pixels, each a column, without what the layer does to sums.
fn begun(column: u32) -> mat4x4<f32> {
    let bias = weights[layer.bias + column];
    return mat4x4<f32>(bias, bias, bias, bias);
}

// From four input channels to four output channels.
fn taps(at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
}

fn keep(sum: vec4<f32>, at: vec2<i32>, column: u32) {
    if all(at < layer.region.xy + layer.region.zw) && column < layer.output.columns {
        let value = joined(activated(sum, column), at, column);
        arena[index_of(layer.output, at) + column] = pack(value);
    }
}

fn keep_run(sums: mat4x4<f32>, at: vec2<i32>, column: u32) {
    keep(sums[0], at, column);
    keep(sums[1], at + vec2<i32>(1, 0), column);
    keep(sums[2], at + vec2<i32>(2, 0), column);
    keep(sums[3], at + vec2<i32>(3, 0), column);
}

// The sums are variables, not an array: a driver that does not unroll a loop over an array keeps that in memory.
@compute @workgroup_size(EDGE / RUN, EDGE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let corner = layer.region.xy + vec2<i32>(group.xy * EDGE);
    let first_out = group.z * OUT;
    var a = begun(first_out);
    var b = begun(first_out + 1u);
    var c = begun(first_out + 2u);
    var d = begun(first_out + 3u);
    var next = layer.weights + first_out * 4u;
    for (var i = 0u; i < layer.input_count; i++) {
        for (var column = 0u; column < layer.inputs[i].columns; column++) {
            workgroupBarrier();
            for (var k = index; k < WINDOW * WINDOW; k += INVOCATIONS) {
                let offset = vec2<i32>(i32(k % WINDOW), i32(k / WINDOW)) - vec2<i32>(REACH);
                window[k] = padded(i, corner + offset, column);
            }
            workgroupBarrier();
            for (var tap = 0u; tap < SIDE * SIDE; tap++) {
                let p = (local.y + tap / SIDE) * WINDOW + local.x * RUN + tap % SIDE;
                let run = mat4x4<f32>(window[p], window[p + 1u], window[p + 2u], window[p + 3u]);
                a += taps(next) * run;
                if OUT > 1u {
                    b += taps(next + 4u) * run;
                }
                if OUT > 2u {
                    c += taps(next + 8u) * run;
                }
                if OUT > 3u {
                    d += taps(next + 12u) * run;
                }
                next += layer.output.columns * 4u;
            }
        }
    }
    let at = corner + vec2<i32>(i32(local.x * RUN), i32(local.y));
    keep_run(a, at, first_out);
    if OUT > 1u {
        keep_run(b, at, first_out + 1u);
    }
    if OUT > 2u {
        keep_run(c, at, first_out + 2u);
    }
    if OUT > 3u {
        keep_run(d, at, first_out + 3u);
    }
}
