//! Winograd's F(6x6, 3x3) (A. Lavin, S. Gray: "Fast Algorithms for Convolutional Neural Networks", 2015): a tile
//! of 6x6 outputs from 8x8 inputs with 64 multiplies instead of 324. Interpolation points 0, +-1, +-2, +-1/2 and
//! infinity. Only the transforms stand here; the 64 matrix products between them are `gemm.rs`'s.

use upscale_simd::Lanes;

/// Outputs of a tile, in rows and in columns.
pub(crate) const TILE: usize = 6;
/// Inputs of a tile, in rows and in columns: one more on each side.
pub(crate) const WINDOW: usize = 8;
/// Products per tile.
pub(crate) const POSITIONS: usize = WINDOW * WINDOW;
/// Where every output has weight 1: a bias added at this position reaches all of them once.
pub(crate) const BIAS_POSITION: usize = WINDOW + 1;

/// G: takes a kernel's three taps to the eight points. The rows of +-1/2 carry 1/32 of their usual size and
/// [`outputs`] makes up for it, which keeps its numbers whole.
const KERNEL: [[f32; 3]; WINDOW] = [
    [1.0, 0.0, 0.0],
    [-2.0 / 9.0, -2.0 / 9.0, -2.0 / 9.0],
    [-2.0 / 9.0, 2.0 / 9.0, -2.0 / 9.0],
    [1.0 / 90.0, 1.0 / 45.0, 2.0 / 45.0],
    [1.0 / 90.0, -1.0 / 45.0, 2.0 / 45.0],
    [1.0 / 45.0, 1.0 / 90.0, 1.0 / 180.0],
    [1.0 / 45.0, -1.0 / 90.0, 1.0 / 180.0],
    [0.0, 0.0, 1.0],
];

/// Row `row` of G g Gt, for a vector of 3x3 kernels `g` (row-major).
#[inline(always)]
pub(crate) fn kernel_row<L: Lanes>(l: L, g: [L::V; 9], row: usize) -> [L::V; WINDOW] {
    let [a, b, c] = KERNEL[row];
    let (a, b, c) = (l.splat(a), l.splat(b), l.splat(c));
    let h = [
        l.fma(g[6], c, l.fma(g[3], b, l.mul(g[0], a))),
        l.fma(g[7], c, l.fma(g[4], b, l.mul(g[1], a))),
        l.fma(g[8], c, l.fma(g[5], b, l.mul(g[2], a))),
    ];
    kernel_line(l, h)
}

/// G g: three taps in a line to the eight points.
#[inline(always)]
pub(crate) fn kernel_line<L: Lanes>(l: L, g: [L::V; 3]) -> [L::V; WINDOW] {
    let mut line = [g[0]; WINDOW];
    for (value, [a, b, c]) in line.iter_mut().zip(KERNEL) {
        let sum = l.fma(g[1], l.splat(b), l.mul(g[0], l.splat(a)));
        *value = l.fma(g[2], l.splat(c), sum);
    }
    line
}

/// Bt d: eight inputs in a line to the eight points.
///
/// No closures here: a closure is a function without the instruction set's features, and a vector operation
/// inside it becomes a call (measured: seven times slower).
#[inline(always)]
pub(crate) fn inputs<L: Lanes>(l: L, d: [L::V; WINDOW]) -> [L::V; WINDOW] {
    let first = l.fma(l.sub(d[4], d[2]), l.splat(5.25), l.sub(d[0], d[6]));
    let last = l.fma(l.sub(d[3], d[5]), l.splat(5.25), l.sub(d[7], d[1]));
    let one_even = l.fma(d[4], l.splat(-4.25), l.add(d[2], d[6]));
    let one_odd = l.fma(d[3], l.splat(-4.25), l.add(d[1], d[5]));
    let two_even = l.fma(d[4], l.splat(-1.25), l.fma(d[2], l.splat(0.25), d[6]));
    let two_odd = l.fma(d[3], l.splat(-2.5), l.mul(d[1], l.splat(0.5)));
    let two_odd = l.fma(d[5], l.splat(2.0), two_odd);
    let half_even = l.fma(d[4], l.splat(-5.0), l.fma(d[2], l.splat(4.0), d[6]));
    let half_odd = l.fma(d[3], l.splat(-2.5), l.mul(d[1], l.splat(2.0)));
    let half_odd = l.fma(d[5], l.splat(0.5), half_odd);
    [
        first,
        l.add(one_even, one_odd),
        l.sub(one_even, one_odd),
        l.add(two_even, two_odd),
        l.sub(two_even, two_odd),
        l.add(half_even, half_odd),
        l.sub(half_even, half_odd),
        last,
    ]
}

/// At m: the eight points to six outputs in a line.
#[inline(always)]
pub(crate) fn outputs<L: Lanes>(l: L, m: [L::V; WINDOW]) -> [L::V; TILE] {
    let (one_sum, one_less) = (l.add(m[1], m[2]), l.sub(m[1], m[2]));
    let (two_sum, two_less) = (l.add(m[3], m[4]), l.sub(m[3], m[4]));
    let (half_sum, half_less) = (l.add(m[5], m[6]), l.sub(m[5], m[6]));
    let row_0 = l.fma(
        half_sum,
        l.splat(32.0),
        l.add(l.add(m[0], one_sum), two_sum),
    );
    let row_1 = l.fma(
        half_less,
        l.splat(16.0),
        l.fma(two_less, l.splat(2.0), one_less),
    );
    let row_2 = l.fma(
        half_sum,
        l.splat(8.0),
        l.fma(two_sum, l.splat(4.0), one_sum),
    );
    let row_3 = l.fma(
        half_less,
        l.splat(4.0),
        l.fma(two_less, l.splat(8.0), one_less),
    );
    let row_4 = l.fma(
        half_sum,
        l.splat(2.0),
        l.fma(two_sum, l.splat(16.0), one_sum),
    );
    let row_5 = l.fma(
        two_less,
        l.splat(32.0),
        l.add(l.add(m[7], one_less), half_less),
    );
    [row_0, row_1, row_2, row_3, row_4, row_5]
}

/// Eight neighbours in a row: each number once, or twice but for the outermost.
#[inline(always)]
pub(crate) fn columns<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    row: &[f32],
    (channel, channels): (usize, usize),
) -> [L::V; WINDOW] {
    if ENLARGED == 1 {
        return lanes.load_line(row, channel, channels);
    }
    let [a, b, c, d, e] = lanes.load_line(row, channel, channels);
    [a, b, b, c, c, d, d, e]
}

/// The `index`-th of each of eight lines.
#[inline(always)]
pub(crate) fn crosswise<V: Copy, const N: usize>(
    lines: &[[V; N]; WINDOW],
    index: usize,
) -> [V; WINDOW] {
    let [a, b, c, d, e, f, g, h] = lines;
    [
        a[index], b[index], c[index], d[index], e[index], f[index], g[index], h[index],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tile with small whole numbers, in lane 0 of the portable vectors.
    #[test]
    fn a_tile_is_its_direct_convolution() {
        let l = upscale_simd::Portable;
        let d = |y: usize, x: usize| ((y * 5 + x * 3) % 7) as f32 - 3.0;
        let g: [f32; 9] = std::array::from_fn(|k| ((k * 4) % 5) as f32 - 2.0);
        let input: [[_; WINDOW]; WINDOW] =
            std::array::from_fn(|y| inputs(l, std::array::from_fn(|x| l.splat(d(y, x)))));
        let kernel: [[_; WINDOW]; WINDOW] =
            std::array::from_fn(|row| kernel_row(l, g.map(|k| l.splat(k)), row));
        let product: [[_; WINDOW]; WINDOW] = std::array::from_fn(|x| {
            let column = inputs(l, std::array::from_fn(|y: usize| input[y][x]));
            std::array::from_fn(|y: usize| l.mul(column[y], kernel[y][x]))
        });
        let half: [[_; TILE]; WINDOW] = std::array::from_fn(|x| outputs(l, product[x]));
        let rows: [[_; TILE]; TILE] =
            std::array::from_fn(|y| outputs(l, std::array::from_fn(|x: usize| half[x][y])));
        for (y, x) in (0..TILE).flat_map(|y| (0..TILE).map(move |x| (y, x))) {
            let taps = (0..9).map(|k| g[k] * d(y + k / 3, x + k % 3));
            let (given, expected): (f32, f32) = (rows[y][x][0], taps.sum());
            assert!((given - expected).abs() < 1e-4, "{y} {x}: {given}");
        }
    }
}
