/* Stored entries of a CSR matrix, as kernels that go through them are given them. */
#ifndef LOCKSTEP_PATTERN_H
#define LOCKSTEP_PATTERN_H

#include "common.h"

typedef struct {
    int64_t n, wide; /* rows; whether offsets and columns have 8 bytes */
    const void *indptr, *indices;
} Pattern;

#endif
