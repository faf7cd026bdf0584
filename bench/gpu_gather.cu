/* What a sparse product could reach at best: rows of a table, gathered by numbers and added up in any order.
 *
 * A sub-warp of c / 4 lanes (at most 32) adds `each` rows and writes one, so that nothing is left out by the compiler. */
typedef long long i64;

extern "C" __global__ void __launch_bounds__(256)
    gather(const i64 groups, const int each, const int c, const int lanes, const int* rows, const float* X,
           float* out) {
    const i64 group = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / lanes;
    const int lane = (int)threadIdx.x % lanes;
    if (group >= groups) return;
    rows += group * each;
    for (int col = 4 * lane; col < c; col += 4 * lanes) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int i = 0; i < each; ++i) {
            const float4 x = *(const float4*)(X + (i64)rows[i] * c + col);
            sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
        }
        *(float4*)(out + group * c + col) = sum;
    }
}
