/* One step of an optimiser over a piece of the weights: the operations of app/gnn/optim.py, element by element. */
#include <math.h>

#include "common.h"

typedef struct {
    float beta1, rest1, beta2, rest2, correction2, epsilon, rate;
} Adam;

/* m = beta1 m + rest1 g;  v = beta2 v + rest2 g g;  w -= rate m / (sqrt(v / correction2) + epsilon) */
WIDE void lk_adam(int64_t size, const Adam *step, float *restrict w, const float *restrict g, float *restrict m,
                  float *restrict v) {
    Adam s = *step;
    for (int64_t i = 0; i < size; ++i) {
        float mean = m[i] * s.beta1 + s.rest1 * g[i];
        float square = v[i] * s.beta2 + s.rest2 * (g[i] * g[i]);
        m[i] = mean;
        v[i] = square;
        w[i] -= s.rate * mean / (sqrtf(square / s.correction2) + s.epsilon);
    }
}
