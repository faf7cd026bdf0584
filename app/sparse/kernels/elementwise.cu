/* The operations on rows of app/numerics/elementwise.py: the same operations on every element in the same order, and sums over
 * the columns of a row as chains from the left. Rows of a matrix are its ld apart. */
#include "common.cuh"

/* Which elements are dropped: see Dropout in app/numerics/elementwise.py. threshold < 0: none. */
typedef struct {
    u64 key;
    i64 first_row;
    int threshold;
    float factor;
} Drop;

/* cell or null: where the key stands, if not in `key`. */
#define DROP_ARGUMENTS                                                                                        \
    const u64 key, const u64 *cell, const i64 first_row, const int threshold, const float factor
#define DROP Drop{cell ? *cell : key, first_row, threshold, factor}

/* Output i of SplitMix64 (Steele, Lea and Flood 2014) from `state`. */
DEVICE u64 splitmix(u64 state, u64 i) {
    u64 z = state + (i + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

DEVICE bool kept(const Drop& drop, u64 node, u64 column) {
    const u64 word = splitmix(splitmix(drop.key, node), column / 4);
    return (int)(word >> column % 4 * 16 & 0xFFFF) >= drop.threshold;
}

DEVICE float dropped(const Drop& drop, i64 row, int col, float z) {
    return kept(drop, (u64)(drop.first_row + row), (u64)col) ? mul(z, drop.factor) : 0.0f;
}

/* Z *= scale[row]; += bias[column]; += add; relu; dropout: each only where given. */
#define ACTIVATE_ARGUMENTS                                                                                    \
    const i64 rows, const int m, float *Z, const i64 ldz, const float *scale, const float *bias,              \
        const float *other, const i64 ldo, const int relu, DROP_ARGUMENTS
#define ACTIVATED(z) activated(z, row, col, scale, bias, other, ldo, relu, drop)

DEVICE float activated(float z, i64 row, int col, const float* scale, const float* bias, const float* other, i64 ldo,
                       int relu, const Drop& drop) {
    if (scale) z = mul(z, scale[row]);
    if (bias) z = add(z, bias[col]);
    if (other) z = add(z, other[row * ldo + col]);
    if (relu) z = z <= 0.0f ? 0.0f : z;
    return drop.threshold >= 0 ? dropped(drop, row, col, z) : z;
}

/* The adjoint, in place over D; H: what activate left, or null: no relu. */
#define DEACTIVATE_ARGUMENTS                                                                                  \
    const i64 rows, const int m, float *D, const i64 ldd, const float *H, const i64 ldh, const float *scale,  \
        DROP_ARGUMENTS

DEVICE float deactivated(float d, i64 row, int col, const float* H, i64 ldh, const float* scale, const Drop& drop) {
    if (H) d = H[row * ldh + col] <= 0.0f ? 0.0f : drop.threshold >= 0 ? mul(d, drop.factor) : d;
    else if (drop.threshold >= 0) d = dropped(drop, row, col, d);
    return scale ? mul(d, scale[row]) : d;
}

/* The element, or by four the first of four, that a thread has; false: none. */
DEVICE bool find_element(i64 rows, int m, int each, i64& row, int& col) {
    const i64 t = thread_number() * each;
    row = t / m, col = (int)(t - row * m);
    return row < rows;
}

#define IN_PLACE(name, four, arguments, A, lda, made)                                                            \
    KERNEL name(arguments) {                                                                                  \
        const Drop drop = DROP;                                                                               \
        i64 row;                                                                                              \
        int col;                                                                                              \
        if (!find_element(rows, m, 1, row, col)) return;                                                      \
        float* at = A + row * lda + col;                                                                      \
        *at = made(*at);                                                                                      \
    }                                                                                                         \
    /* m and strides multiples of 4, 16-byte aligned */                                                       \
    KERNEL four(arguments) {                                                                                 \
        const Drop drop = DROP;                                                                               \
        i64 row;                                                                                              \
        int col;                                                                                              \
        if (!find_element(rows, m, 4, row, col)) return;                                                      \
        float4* at = (float4*)(A + row * lda + col);                                                          \
        float4 z = *at;                                                                                       \
        z.x = made(z.x), ++col, z.y = made(z.y), ++col, z.z = made(z.z), ++col, z.w = made(z.w);              \
        *at = z;                                                                                              \
    }
IN_PLACE(activate, activate_4, ACTIVATE_ARGUMENTS, Z, ldz, ACTIVATED)
#define DEACTIVATED(d) deactivated(d, row, col, H, ldh, scale, drop)
IN_PLACE(deactivate, deactivate_4, DEACTIVATE_ARGUMENTS, D, ldd, DEACTIVATED)

/* Dropout of stored entries; nodes are numbers of rows. */
KERNEL drop_entries(const i64 count, const float* values, const i64* nodes, const i64* columns, float* out,
                    DROP_ARGUMENTS) {
    const i64 t = thread_number();
    if (t < count) out[t] = kept(DROP, (u64)nodes[t], (u64)columns[t]) ? mul(values[t], factor) : 0.0f;
}

/* Y = X, four elements a thread; m and strides multiples of 4, 16-byte aligned. */
KERNEL copy_into(const i64 rows, const int m, float* Y, const i64 ldy, const float* X, const i64 ldx) {
    i64 row;
    int col;
    if (find_element(rows, m, 4, row, col)) *(float4*)(Y + row * ldy + col) = *(const float4*)(X + row * ldx + col);
}

/* Y += factor X. */
KERNEL add_into(const i64 rows, const int m, float* Y, const i64 ldy, const float* X, const i64 ldx,
                const float factor) {
    const i64 t = thread_number(), row = t / m, col = t % m;
    if (row < rows) Y[row * ldy + col] = link(Y[row * ldy + col], X[row * ldx + col], factor);
}

/* ---- layer normalisation ------------------------------------------------------------------------------------ */

KERNEL normalise_rows(const i64 rows, const int m, const float* Z, const i64 ldz, const float* gamma,
                      const float* beta, const float epsilon, float* out, const i64 ldo, float* mean,
                      float* inverse) {
    const i64 row = thread_number();
    if (row >= rows) return;
    const float* z = Z + row * ldz;
    float *y = out + row * ldo, sum = 0.0f, square = 0.0f;
    for (int j = 0; j < m; ++j) sum = add(sum, z[j]);
    const float shift = __fdiv_rn(sum, (float)m);
    for (int j = 0; j < m; ++j) square = link(square, sub(z[j], shift), sub(z[j], shift));
    const float scale = __fdiv_rn(1.0f, __fsqrt_rn(add(__fdiv_rn(square, (float)m), epsilon)));
    for (int j = 0; j < m; ++j) y[j] = link(beta[j], mul(sub(z[j], shift), scale), gamma[j]);
    mean[row] = shift;
    inverse[row] = scale;
}

/* The adjoint in place over D; product or null: D times the normalised rows. */
KERNEL normalise_rows_back(const i64 rows, const int m, float* D, const i64 ldd, const float* Z, const i64 ldz,
                           const float* mean, const float* inverse, const float* gamma, float* product,
                           const i64 ldp) {
    const i64 row = thread_number();
    if (row >= rows) return;
    const float *z = Z + row * ldz, shift = mean[row], scale = inverse[row];
    float *d = D + row * ldd, first = 0.0f, second = 0.0f;
    for (int j = 0; j < m; ++j) {
        const float x = mul(sub(z[j], shift), scale);
        if (product) product[row * ldp + j] = mul(d[j], x);
        const float g = mul(d[j], gamma[j]);
        d[j] = g;
        first = add(first, g);
        second = link(second, g, x);
    }
    first = __fdiv_rn(first, (float)m);
    second = __fdiv_rn(second, (float)m);
    for (int j = 0; j < m; ++j) {
        const float x = mul(sub(z[j], shift), scale);
        d[j] = mul(sub(sub(d[j], first), mul(x, second)), scale);
    }
}

/* ---- batch normalisation ------------------------------------------------------------------------------------
 * mean, inverse (1 / deviation), gamma, beta, first, second: of columns. */

/* out [blocks, m]: by blocks of rows the sums of those that are counted, of squares above the mean where that is
 * given. A sum a thread. */
KERNEL counted_sums(const i64 blocks, const int m, const i64* starts, const float* Z, const i64 ldz,
                    const float* counted, const float* mean, float* out) {
    const i64 t = thread_number(), block = t / m, col = t % m;
    if (block >= blocks) return;
    const float centre = mean ? mean[col] : 0.0f;
    float sum = 0.0f;
    for (i64 row = starts[block]; row < starts[block + 1]; ++row) {
        const float z = Z[row * ldz + col], above = sub(z, centre), part = mean ? mul(above, above) : z;
        if (counted[row] != 0.0f) sum = add(sum, part);
    }
    out[t] = sum;
}

/* out = normalised columns times gamma, and beta. */
KERNEL normalise_columns(const i64 rows, const int m, const float* Z, const i64 ldz, const float* mean,
                         const float* inverse, const float* gamma, const float* beta, float* out, const i64 ldo) {
    i64 row;
    int col;
    if (!find_element(rows, m, 1, row, col)) return;
    const float x = mul(sub(Z[row * ldz + col], mean[col]), inverse[col]);
    out[row * ldo + col] = link(beta[col], x, gamma[col]);
}

/* out [blocks, 2 m]: by blocks of rows the sums of D, and of D times the normalised columns. A column a thread. */
KERNEL norm_sums(const i64 blocks, const int m, const i64* starts, const float* D, const i64 ldd, const float* Z,
                 const i64 ldz, const float* mean, const float* inverse, float* out) {
    const i64 t = thread_number(), block = t / m, col = t % m;
    if (block >= blocks) return;
    const float shift = mean[col], scale = inverse[col];
    float first = 0.0f, second = 0.0f;
    for (i64 row = starts[block]; row < starts[block + 1]; ++row) {
        const float d = D[row * ldd + col], x = mul(sub(Z[row * ldz + col], shift), scale);
        first = add(first, d);
        second = link(second, d, x);
    }
    out[block * 2 * m + col] = first;
    out[block * 2 * m + m + col] = second;
}

/* The adjoint by Z in place over D; counted: 1 where a row has part in the statistics, else 0. */
KERNEL normalise_columns_back(const i64 rows, const int m, float* D, const i64 ldd, const float* Z, const i64 ldz,
                              const float* mean, const float* inverse, const float* gamma, const float* first,
                              const float* second, const float* counted) {
    i64 row;
    int col;
    if (!find_element(rows, m, 1, row, col)) return;
    const float x = mul(sub(Z[row * ldz + col], mean[col]), inverse[col]);
    const float away = mul(link(first[col], x, second[col]), counted[row]);
    float* d = D + row * ldd + col;
    *d = mul(sub(*d, away), mul(gamma[col], inverse[col]));
}

/* ---- Adam --------------------------------------------------------------------------------------------------- */

/* Kingma and Ba 2015, algorithm 1; step: the rate over m's correction. */
KERNEL adam(const i64 size, float* weights, const float* gradient, float* m, float* v, const float beta1,
            const float rest1, const float beta2, const float rest2, const float correction, const float epsilon,
            const float step) {
    const i64 t = thread_number();
    if (t >= size) return;
    const float g = gradient[t];
    const float mean = add(mul(m[t], beta1), mul(rest1, g)), square = add(mul(v[t], beta2), mul(rest2, mul(g, g)));
    const float root = add(__fsqrt_rn(__fdiv_rn(square, correction)), epsilon);
    m[t] = mean;
    v[t] = square;
    weights[t] = sub(weights[t], __fdiv_rn(mul(step, mean), root));
}
