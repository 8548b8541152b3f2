// The picture on its way in and out. `gather` makes map 0 of the source: squares of pixels side by side in the channels,
// the mean taken off. `spread` shuffles the last map onto the base and clamps it.
// Before this text comes how maps are stored.

struct Frame {
    // First column and row that are made (of map 0, or of the result), and how many.
    region: vec4<i32>,
    // Columns and rows of the source.
    source: vec2<i32>,
    channels: u32,
    scale: u32,
    unshuffle: u32,
    shuffle: u32,
    base: u32,
    offset: u32,
    mean: vec4<f32>,
    // Of the map: vectors of four a pixel, its first pixel, pixels a row.
    columns: u32,
    x: i32,
    y: i32,
    width: u32,
    // Of every phase of the interpolated base: four weights; first taps.
    taps: array<vec4<f32>, 4>,
    firsts: vec4<i32>,
}

@group(0) @binding(0) var<storage, read_write> arena: array<Stored>;
@group(0) @binding(2) var<uniform> frame: Frame;
@group(0) @binding(3) var<storage, read> source: array<f32>;
@group(0) @binding(4) var<storage, read_write> result: array<f32>;

// The source goes on beyond its edges.
fn sample(at: vec2<i32>, colour: u32) -> f32 {
    let inside = clamp(at, vec2<i32>(), frame.source - vec2<i32>(1));
    let pixel = u32(inside.y * frame.source.x + inside.x);
    return source[pixel * frame.channels + select(0u, colour, frame.channels == 3u)];
}

fn index_of(at: vec2<i32>) -> u32 {
    let inside = vec2<u32>(at - vec2<i32>(frame.x, frame.y));
    return frame.offset + (inside.y * frame.width + inside.x) * frame.columns;
}

@compute @workgroup_size(8, 8)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(vec2<i32>(id.xy) >= frame.region.zw) {
        return;
    }
    let at = frame.region.xy + vec2<i32>(id.xy);
    let side = frame.unshuffle;
    for (var column = 0u; column < frame.columns; column++) {
        var four = vec4<f32>();
        for (var i = 0u; i < 4u; i++) {
            let channel = column * 4u + i;
            let colour = channel / (side * side);
            if colour < 3u {
                let offset = vec2<u32>(channel % side, channel / side % side);
                four[i] = sample(at * i32(side) + vec2<i32>(offset), colour) - frame.mean[colour];
            }
        }
        arena[index_of(at) + column] = pack(four);
    }
}

fn interpolated(pixel: vec2<i32>, phase: vec2<u32>, colour: u32) -> f32 {
    let across = frame.taps[phase.x];
    let down = frame.taps[phase.y];
    let first = pixel + vec2<i32>(frame.firsts[phase.x], frame.firsts[phase.y]);
    var sum = 0.0;
    for (var row = 0; row < 4; row++) {
        for (var column = 0; column < 4; column++) {
            sum += down[row] * across[column] * sample(first + vec2<i32>(column, row), colour);
        }
    }
    return sum;
}

fn base(at: vec2<u32>, colour: u32) -> f32 {
    let pixel = vec2<i32>(at / frame.scale);
    switch frame.base {
        case 1u: {
            return sample(pixel, colour);
        }
        case 2u: {
            return interpolated(pixel, at % frame.scale, colour);
        }
        default: {
            return 0.0;
        }
    }
}

@compute @workgroup_size(8, 8)
fn spread(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(vec2<i32>(id.xy) >= frame.region.zw) {
        return;
    }
    let at = vec2<u32>(frame.region.xy) + id.xy;
    let side = frame.shuffle;
    let last = index_of(vec2<i32>(at / side));
    var colours = vec3<f32>();
    for (var colour = 0u; colour < 3u; colour++) {
        let channel = (colour * side + at.y % side) * side + at.x % side;
        let correction = unpack(arena[last + channel / 4u])[channel % 4u];
        colours[colour] = clamp(base(at, colour) + correction, 0.0, 1.0);
    }
    let pixel = id.y * u32(frame.region.z) + id.x;
    if frame.channels == 1u {
        result[pixel] = (colours.x + colours.y + colours.z) / 3.0;
        return;
    }
    for (var colour = 0u; colour < 3u; colour++) {
        result[pixel * 3u + colour] = colours[colour];
    }
}
