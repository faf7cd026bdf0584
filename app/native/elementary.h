/* exp and log of app/numerics/elementary.py: the same exact operations in the same order, hence the same bits. */
#ifndef LOCKSTEP_ELEMENTARY_H
#define LOCKSTEP_ELEMENTARY_H

#include <math.h>

#include "common.h"

static const float EXP_LEAST = -87.0f, EXP_MOST = 88.7228f; /* all results between are normal numbers */

/* 2^n, -126 <= n <= 127. */
INLINE float power_of_two(int32_t n) {
    const int32_t bits = (n + 127) << 23;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

INLINE float exp_float(float x) {
    const int inside = (x > EXP_LEAST) & (x < EXP_MOST);
    const float t = inside ? x : 0.0f;
    const float n = floorf(t * (float)(1 / 0.6931471805599453) + 0.5f);
    const float r = (t - n * 0.693359375f) - n * -2.1219444005469057e-4f;
    const int32_t e = (int32_t)n, half = e >> 1;
    float p = (float)(1.0 / 5040);
    p = p * r + (float)(1.0 / 720);
    p = p * r + (float)(1.0 / 120);
    p = p * r + (float)(1.0 / 24);
    p = p * r + (float)(1.0 / 6);
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    p = p * power_of_two(half) * power_of_two(e - half);
    return inside ? p : x <= EXP_LEAST ? 0.0f : x >= EXP_MOST ? INFINITY : x;
}

/* Of a normal number, or NaN. */
INLINE float log_float(float x) {
    int32_t bits;
    memcpy(&bits, &x, 4);
    int32_t e = (bits >> 23) - 126;
    const int32_t half = (bits & 0x7FFFFF) | 0x3F000000;
    float m;
    memcpy(&m, &half, 4);
    const int low = m < (float)0.7071067811865476;
    m = low ? m + m : m;
    e -= low;
    const float s = (m - 1.0f) / (m + 1.0f), t = s * s;
    const float series = ((t * (float)(1.0 / 9) + (float)(1.0 / 7)) * t + (float)(1.0 / 5)) * t + (float)(1.0 / 3);
    const float out = (float)e * (float)0.6931471805599453 + 2.0f * s * (1.0f + t * series);
    return x == x ? out : x;
}

/* The same of a normal float64, from which a float32 follows by rounding. */
INLINE double log_double(double x) {
    int64_t bits;
    memcpy(&bits, &x, 8);
    int64_t e = (bits >> 52) - 1022;
    const int64_t half = (bits & INT64_C(0xFFFFFFFFFFFFF)) | INT64_C(0x3FE0000000000000);
    double m;
    memcpy(&m, &half, 8);
    const int low = m < 0.7071067811865476;
    m = low ? m + m : m;
    e -= low;
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    const double series = ((t * (1.0 / 9) + 1.0 / 7) * t + 1.0 / 5) * t + 1.0 / 3;
    return (double)e * 0.6931471805599453 + 2.0 * s * (1.0 + t * series);
}

#endif
