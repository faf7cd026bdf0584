/* Losses of app/numerics/elementwise.py and what they predict: a thread to a row, whose sums are chains from the left. Rows of
 * a matrix are its ld apart. */
#include "common.cuh"

#define SOFTMAX_ARGUMENTS                                                                                     \
    const i64 rows, const int c, float *Z, const i64 ldz, const int *labels, const float *weight, float *losses

/* The loss of a row, which becomes the gradient. */
DEVICE float softmax_row(float* z, int c, int label, float w) {
    if (label < 0 || label >= c || w == 0.0f) {
        for (int j = 0; j < c; ++j) z[j] = 0.0f;
        return 0.0f;
    }
    float top = z[0], total = 0.0f;
    for (int j = 1; j < c; ++j) top = z[j] > top ? z[j] : top;
    const float chosen = sub(z[label], top);
    for (int j = 0; j < c; ++j) {
        const float e = exp_float(sub(z[j], top));
        z[j] = e;
        total = add(total, e);
    }
    for (int j = 0; j < c; ++j) {
        const float share = __fdiv_rn(z[j], total);
        z[j] = mul(j == label ? sub(share, 1.0f) : share, w);
    }
    return mul(sub(log_float(total), chosen), w);
}

KERNEL softmax_loss(SOFTMAX_ARGUMENTS) {
    const i64 row = thread_number();
    if (row < rows) losses[row] = softmax_row(Z + row * ldz, c, labels[row], weight[row]);
}

/* The same for at most NEAR columns: a block brings its rows into shared memory and takes them back, so that the lines of
 * Z are read and written whole. Rows lie an odd number of floats apart there: lanes have banks of their own. */
enum { NEAR = 47 };

KERNEL __launch_bounds__(256) softmax_loss_near(SOFTMAX_ARGUMENTS) {
    __shared__ float near[256 * NEAR];
    const int thread = (int)threadIdx.x, step = c | 1;
    const i64 row0 = (i64)blockIdx.x * 256, row = row0 + thread;
    const int all = (int)(rows - row0 < 256 ? rows - row0 : 256) * c;
    for (int t = thread; t < all; t += 256) near[t / c * step + t % c] = Z[(row0 + t / c) * ldz + t % c];
    __syncthreads();
    if (row < rows) losses[row] = softmax_row(near + thread * step, c, labels[row], weight[row]);
    __syncthreads();
    for (int t = thread; t < all; t += 256) Z[(row0 + t / c) * ldz + t % c] = near[t / c * step + t % c];
}

KERNEL sigmoid_loss(const i64 rows, const int c, float* Z, const i64 ldz, const float* targets, const i64 ldt,
                    const float* weight, float* losses) {
    const i64 row = thread_number();
    if (row >= rows) return;
    float *z = Z + row * ldz, total = 0.0f;
    const float w = weight[row];
    for (int j = 0; j < c; ++j) {
        const float x = z[j], target = targets[row * ldt + j];
        const float e = exp_float(-fabsf(x)), below = add(1.0f, e);
        const bool known = target == target;  /* NaN: none */
        const float term = add(sub(x > 0.0f ? x : 0.0f, mul(x, target)), log_float(below));
        total = add(total, known ? term : 0.0f);
        const float g = mul(sub(__fdiv_rn(x < 0.0f ? e : 1.0f, below), target), w);
        z[j] = w != 0.0f && known ? g : 0.0f;
    }
    losses[row] = w != 0.0f ? mul(total, w) : 0.0f;
}

KERNEL squared_loss(const i64 rows, const int c, float* Z, const i64 ldz, const float* targets, const i64 ldt,
                    const float* weight, float* losses) {
    const i64 row = thread_number();
    if (row >= rows) return;
    float *z = Z + row * ldz, total = 0.0f;
    const float w = weight[row], twice = mul(2.0f, w);
    for (int j = 0; j < c; ++j) {
        const float target = targets[row * ldt + j];
        const float error = target == target ? sub(z[j], target) : 0.0f;  /* NaN: none */
        total = add(total, mul(error, error));
        z[j] = w != 0.0f ? mul(error, twice) : 0.0f;
    }
    losses[row] = w != 0.0f ? mul(total, w) : 0.0f;
}

/* The column of each row's largest element: the first of equal ones, NaN above all. */
KERNEL argmax_rows(const i64 rows, const int c, const float* Z, const i64 ldz, int* out) {
    const i64 row = thread_number();
    if (row >= rows) return;
    const float* z = Z + row * ldz;
    int best = 0;
    for (int j = 1; j < c && z[best] == z[best]; ++j)
        if (z[j] > z[best] || z[j] != z[j]) best = j;
    out[row] = best;
}
