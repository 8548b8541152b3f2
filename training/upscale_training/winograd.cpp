// 3x3 convolutions by Winograd's F(4x4, 3x3) (Lavin & Gray 2016), forward and backward, one thread, for training on a
// CPU. Memory is channels last: [n][h][w][C], h and w multiples of 4, C one of 32, 48, 64. winograd.py calls it.
//
// Tiles go through in blocks that stay in the second-level cache; a block's 36 products are plain matrix products.
#include <algorithm>
#include <cstring>

namespace {

// One register of the processor that this is compiled for: a wider type would be computed in memory (with AVX-512's,
// a step of S took nine times as long on a Zen 3, which has AVX2). ROWS x STRIP of them are the accumulators of the
// inner product: as many as fit beside a row of the second factor.
#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 8, STRIP = 4;
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 4, STRIP = 3;
#else
constexpr int LANES = 4, ROWS = 4, STRIP = 3;
#endif
typedef float V __attribute__((vector_size(4 * LANES)));
// Tiles of a block: 36 x 24 x 64 floats are 221 KB, twice.
constexpr int BLOCK = 24;

struct Shape {
    int n, h, w;
    int tiles() const { return n * (h / 4) * (w / 4); }
};

// Where tile number `i` begins: picture, first row, first column.
struct Place {
    int n, y, x;
    Place(const Shape &s, int i) : n(i / ((s.h / 4) * (s.w / 4))), y(i / (s.w / 4) % (s.h / 4) * 4), x(i % (s.w / 4) * 4) {}
};

// B^T d of one column or row of six.
inline void input_six(const V *d, int step, V *out, int out_step) {
    V a = d[4 * step] - 4 * d[2 * step], b = d[3 * step] - 4 * d[step];
    V c = d[4 * step] - d[2 * step], e = 2 * (d[3 * step] - d[step]);
    out[0] = 4 * d[0] - 5 * d[2 * step] + d[4 * step];
    out[out_step] = a + b;
    out[2 * out_step] = a - b;
    out[3 * out_step] = c + e;
    out[4 * out_step] = c - e;
    out[5 * out_step] = 4 * d[step] - 5 * d[3 * step] + d[5 * step];
}

// B v, the adjoint.
inline void input_back(const V *v, int step, V *out, int out_step) {
    V p = v[step] + v[2 * step], m = v[step] - v[2 * step];
    V q = v[3 * step] + v[4 * step], r = v[3 * step] - v[4 * step];
    out[0] = 4 * v[0];
    out[out_step] = -4 * m - 2 * r + 4 * v[5 * step];
    out[2 * out_step] = -5 * v[0] - 4 * p - q;
    out[3 * out_step] = m + 2 * r - 5 * v[5 * step];
    out[4 * out_step] = v[0] + p + q;
    out[5 * out_step] = v[5 * step];
}

// A^T m: six to four.
inline void output_four(const V *m, int step, V *out, int out_step) {
    V p = m[step] + m[2 * step], d = m[step] - m[2 * step];
    V q = m[3 * step] + m[4 * step], r = m[3 * step] - m[4 * step];
    out[0] = m[0] + p + q;
    out[out_step] = d + 2 * r;
    out[2 * out_step] = p + 4 * q;
    out[3 * out_step] = d + 8 * r + m[5 * step];
}

// A g: four to six, the adjoint.
inline void output_back(const V *g, int step, V *out, int out_step) {
    V even = g[0] + g[2 * step], odd = g[step] + g[3 * step];
    V even2 = g[0] + 4 * g[2 * step], odd2 = 2 * g[step] + 8 * g[3 * step];
    out[0] = g[0];
    out[out_step] = even + odd;
    out[2 * out_step] = even - odd;
    out[3 * out_step] = even2 + odd2;
    out[4 * out_step] = even2 - odd2;
    out[5 * out_step] = g[3 * step];
}

// G w: three taps to six points.
inline void filter_six(const V *w, int step, V *out, int out_step) {
    V outer = w[0] + w[2 * step], far = w[0] / 24 + w[2 * step] / 6;
    out[0] = w[0] / 4;
    out[out_step] = (outer + w[step]) / -6;
    out[2 * out_step] = (outer - w[step]) / -6;
    out[3 * out_step] = far + w[step] / 12;
    out[4 * out_step] = far - w[step] / 12;
    out[5 * out_step] = w[2 * step];
}

// G^T u, the adjoint.
inline void filter_back(const V *u, int step, V *out, int out_step) {
    V near = (u[step] + u[2 * step]) / 6, far = u[3 * step] + u[4 * step];
    out[0] = u[0] / 4 - near + far / 24;
    out[out_step] = (u[2 * step] - u[step]) / 6 + (u[3 * step] - u[4 * step]) / 12;
    out[2 * out_step] = far / 6 - near + u[5 * step];
}

// Of the rows of C floats at `b` and `out`, the first WIDE vectors.
template <int C, int WIDE, bool ADD>
inline void strip(const float *a, int row_step, int depth_step, int depth, const float *b, float *out) {
    V sums[ROWS][WIDE];
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDE; i++) sums[r][i] = ADD ? ((const V *)(out + r * C))[i] : V{};
    int j = 0;
    do {
        const V *row = (const V *)(b + j * C);
        for (int r = 0; r < ROWS; r++) {
            float value = a[r * row_step + j * depth_step];
            for (int i = 0; i < WIDE; i++) sums[r][i] += value * row[i];
        }
    } while (++j < depth);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDE; i++) ((V *)(out + r * C))[i] = sums[r][i];
}

// out[ROWS][C] (+)= sum over j < depth of a[r * row_step + j * depth_step] * b[j][C].
template <int C, bool ADD>
inline void product(const float *a, int row_step, int depth_step, int depth, const float *b, float *out) {
    constexpr int VECTORS = C / LANES, WIDE = VECTORS <= STRIP ? VECTORS : VECTORS % 3 ? 2 : 3;
    for (int c = 0; c < C; c += WIDE * LANES) strip<C, WIDE, ADD>(a, row_step, depth_step, depth, b + c, out + c);
}

template <int C>
struct Buffers {
    alignas(64) float v[36][BLOCK][C];
    alignas(64) float m[36][BLOCK][C];
};

// v[.][t] = B^T d B of the tile's 6 x 6 inputs; what lies outside the picture is zero.
template <int C>
void read_tile(const float *x, const Shape &s, Place at, int t, Buffers<C> &buffers) {
    alignas(64) static const float zeros[C] = {};
    const float *from[36];
    const float *corner = x + ((long(at.n) * s.h + at.y - 1) * s.w + at.x - 1) * C;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            bool inside = unsigned(at.y + i - 1) < unsigned(s.h) && unsigned(at.x + k - 1) < unsigned(s.w);
            from[6 * i + k] = inside ? corner + (long(i) * s.w + k) * C : zeros;
        }
    for (int c = 0; c < C; c += LANES) {
        V e[36];
#pragma GCC unroll 6
        for (int k = 0; k < 6; k++) {
            V d[6];
#pragma GCC unroll 6
            for (int i = 0; i < 6; i++) d[i] = *(const V *)(from[6 * i + k] + c);
            input_six(d, 1, e + k, 6);
        }
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            V row[6];
            input_six(e + 6 * i, 1, row, 1);
#pragma GCC unroll 6
            for (int k = 0; k < 6; k++) *(V *)&buffers.v[6 * i + k][t][c] = row[k];
        }
    }
}

// y = A^T m A + bias of one tile, through ReLU if asked.
template <int C>
void write_tile(float *y, const float *bias, bool relu, const Shape &s, Place at, int t, const Buffers<C> &buffers) {
    for (int c = 0; c < C; c += LANES) {
        V m[36], e[24], out[16], plus = *(const V *)(bias + c);
#pragma GCC unroll 36
        for (int k = 0; k < 36; k++) m[k] = *(const V *)&buffers.m[k][t][c];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) output_four(m + i, 6, e + i, 6);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) output_four(e + 6 * i, 1, out + 4 * i, 1);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            V value = out[i] + plus;
            if (relu) value = value > 0 ? value : V{};
            *(V *)(y + ((long(at.n) * s.h + at.y + i / 4) * s.w + at.x + i % 4) * C + c) = value;
        }
    }
}

// m[.][t] = A g A^T of the tile's gradients, zero where ReLU cut (y <= 0); adds them to `bias_gradient`.
template <int C>
void read_gradient(const float *g, const float *y, const Shape &s, Place at, int t, Buffers<C> &buffers, float *bias_gradient) {
    for (int c = 0; c < C; c += LANES) {
        V d[16], e[24], sum = {};
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            long offset = ((long(at.n) * s.h + at.y + i / 4) * s.w + at.x + i % 4) * C + c;
            d[i] = *(const V *)(g + offset);
            if (y) d[i] = *(const V *)(y + offset) > 0 ? d[i] : V{};
            sum += d[i];
        }
        *(V *)(bias_gradient + c) += sum;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) output_back(d + i, 4, e + i, 4);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            V row[6];
            output_back(e + 4 * i, 1, row, 1);
    #pragma GCC unroll 6
        for (int k = 0; k < 6; k++) *(V *)&buffers.m[6 * i + k][t][c] = row[k];
        }
    }
}

// Adds B v B^T of one tile to the input's gradient.
template <int C>
void add_tile(float *dx, const Shape &s, Place at, int t, const Buffers<C> &buffers) {
    for (int c = 0; c < C; c += LANES) {
        V v[36], e[36];
#pragma GCC unroll 36
        for (int k = 0; k < 36; k++) v[k] = *(const V *)&buffers.v[k][t][c];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) input_back(v + i, 6, e + i, 6);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            V row[6];
            input_back(e + 6 * i, 1, row, 1);
            int y = at.y + i - 1;
            if (unsigned(y) >= unsigned(s.h)) continue;
            for (int k = 0; k < 6; k++) {
                int z = at.x + k - 1;
                if (unsigned(z) >= unsigned(s.w)) continue;
                *(V *)(dx + ((long(at.n) * s.h + y) * s.w + z) * C + c) += row[k];
            }
        }
    }
}

// Rows of the input's gradient are cleared shortly before their first tile adds to them, while they are in the cache.
template <int C>
void clear_rows(float *dx, const Shape &s, Place at) {
    if (at.x) return;
    int from = at.y ? at.y + 1 : 0, to = std::min(at.y + 5, s.h);
    long row = long(s.w) * C;
    std::memset(dx + (long(at.n) * s.h + from) * row, 0, (to - from) * row * sizeof(float));
}

template <int C>
void forward(const float *x, const float *u, const float *bias, float *y, bool relu, const Shape &s) {
    static thread_local Buffers<C> buffers;
    for (int first = 0; first < s.tiles(); first += BLOCK) {
        int count = std::min(BLOCK, s.tiles() - first);
        for (int t = 0; t < count; t++) read_tile<C>(x, s, Place(s, first + t), t, buffers);
        for (int k = 0; k < 36; k++)
            for (int t = 0; t < count; t += ROWS)
                product<C, false>(buffers.v[k][t], C, 1, C, u + k * C * C, buffers.m[k][t]);
        for (int t = 0; t < count; t++) write_tile<C>(y, bias, relu, s, Place(s, first + t), t, buffers);
    }
}

template <int C>
void backward(const float *x, const float *u_turned, const float *y, const float *g, float *dx, float *du,
              float *dbias, const Shape &s) {
    static thread_local Buffers<C> buffers;
    for (int first = 0; first < s.tiles(); first += BLOCK) {
        int count = std::min(BLOCK, s.tiles() - first);
        for (int t = 0; t < count; t++) {
            read_tile<C>(x, s, Place(s, first + t), t, buffers);
            read_gradient<C>(g, y, s, Place(s, first + t), t, buffers, dbias);
        }
        for (int k = 0; k < 36; k++) {
            for (int c = 0; c < C; c += ROWS)
                product<C, true>(&buffers.v[k][0][c], 1, C, count, buffers.m[k][0], du + (k * C + c) * C);
            // The inputs' transforms are done with: their place takes the gradients of the same.
            for (int t = 0; t < count; t += ROWS)
                product<C, false>(buffers.m[k][t], C, 1, C, u_turned + k * C * C, buffers.v[k][t]);
        }
        for (int t = 0; t < count; t++) {
            clear_rows<C>(dx, s, Place(s, first + t));
            add_tile<C>(dx, s, Place(s, first + t), t, buffers);
        }
    }
}

constexpr int TAPS = 4;

// y[rows][C] = bias + the sum of taps[i][rows][C] times u[i][inputs][outputs]; rows are a multiple of ROWS.
template <int C>
void fuse(const float *const taps[TAPS], const float *u, const float *bias, float *y, long rows) {
    for (long r = 0; r < rows; r += ROWS) {
        for (int i = 0; i < ROWS; i++) std::memcpy(y + (r + i) * C, bias, C * sizeof(float));
        for (int i = 0; i < TAPS; i++) product<C, true>(taps[i] + r * C, C, 1, C, u + i * C * C, y + r * C);
    }
}

template <int C>
void fuse_back(const float *const taps[TAPS], const float *u_turned, const float *g, float *const d_taps[TAPS],
               float *du, float *dbias, long rows) {
    constexpr int AT_ONCE = 6 * ROWS;
    for (long first = 0; first < rows; first += AT_ONCE) {
        int count = std::min(long(AT_ONCE), rows - first);
        const float *here = g + first * C;
        for (int r = 0; r < count; r++)
            for (int c = 0; c < C; c++) dbias[c] += here[r * C + c];
        for (int i = 0; i < TAPS; i++) {
            for (int r = 0; r < count; r += ROWS)
                product<C, false>(here + r * C, C, 1, C, u_turned + i * C * C, d_taps[i] + (first + r) * C);
            for (int c = 0; c < C; c += ROWS)
                product<C, true>(taps[i] + first * C + c, 1, C, count, here, du + (i * C + c) * C);
        }
    }
}

} // namespace

// u[36][count] = G w G^T of w[3][3][count], elementwise; 16 divides count.
extern "C" void filters(const float *w, float *u, long count) {
    for (long i = 0; i < count; i += LANES) {
        V d[9], e[18], row[6];
        for (int k = 0; k < 9; k++) d[k] = *(const V *)(w + k * count + i);
        for (int k = 0; k < 3; k++) filter_six(d + k, 3, e + k, 3);
        for (int a = 0; a < 6; a++) {
            filter_six(e + 3 * a, 1, row, 1);
            for (int b = 0; b < 6; b++) *(V *)(u + (6 * a + b) * count + i) = row[b];
        }
    }
}

// dw[3][3][count] = G^T du G.
extern "C" void filters_backward(const float *du, float *dw, long count) {
    for (long i = 0; i < count; i += LANES) {
        V d[36], e[18], row[3];
        for (int k = 0; k < 36; k++) d[k] = *(const V *)(du + k * count + i);
        for (int k = 0; k < 6; k++) filter_back(d + k, 6, e + k, 6);
        for (int a = 0; a < 3; a++) {
            filter_back(e + 6 * a, 1, row, 1);
            for (int b = 0; b < 3; b++) *(V *)(dw + (3 * a + b) * count + i) = row[b];
        }
    }
}

// y[n][h][w][C] = conv(x, weights) + bias, zeros beyond the edges; u is [36][inputs][outputs].
extern "C" void winograd_forward(const float *x, const float *u, const float *bias, float *y, int relu, int n, int h,
                                 int w, int channels) {
    Shape s{n, h, w};
    if (channels == 32) forward<32>(x, u, bias, y, relu, s);
    if (channels == 48) forward<48>(x, u, bias, y, relu, s);
    if (channels == 64) forward<64>(x, u, bias, y, relu, s);
}

// Writes dx; adds to du and dbias, which begin as zeros. u_turned is [36][outputs][inputs]; y is the output where ReLU
// followed, else null.
extern "C" void winograd_backward(const float *x, const float *u_turned, const float *y, const float *g, float *dx,
                                  float *du, float *dbias, int n, int h, int w, int channels) {
    Shape s{n, h, w};
    if (channels == 32) backward<32>(x, u_turned, y, g, dx, du, dbias, s);
    if (channels == 48) backward<48>(x, u_turned, y, g, dx, du, dbias, s);
    if (channels == 64) backward<64>(x, u_turned, y, g, dx, du, dbias, s);
}

// The 1x1 convolution of four taps: y[rows][C] = bias + the sum of tap i times u[i][inputs][outputs]; 16 divides rows.
extern "C" void fuse_forward(const float *a, const float *b, const float *c, const float *d, const float *u,
                             const float *bias, float *y, long rows, int channels) {
    const float *taps[TAPS] = {a, b, c, d};
    if (channels == 32) fuse<32>(taps, u, bias, y, rows);
    if (channels == 48) fuse<48>(taps, u, bias, y, rows);
    if (channels == 64) fuse<64>(taps, u, bias, y, rows);
}

// Writes the taps' gradients; adds to du and dbias, which begin as zeros. u_turned is [4][outputs][inputs].
extern "C" void fuse_backward(const float *a, const float *b, const float *c, const float *d, const float *u_turned,
                              const float *g, float *da, float *db, float *dc, float *dd, float *du, float *dbias,
                              long rows, int channels) {
    const float *taps[TAPS] = {a, b, c, d};
    float *d_taps[TAPS] = {da, db, dc, dd};
    if (channels == 32) fuse_back<32>(taps, u_turned, g, d_taps, du, dbias, rows);
    if (channels == 48) fuse_back<48>(taps, u_turned, g, d_taps, du, dbias, rows);
    if (channels == 64) fuse_back<64>(taps, u_turned, g, d_taps, du, dbias, rows);
}
