/* Memory that is taken piece by piece and given back as a whole. */
#ifndef LOCKSTEP_BLOCKS_H
#define LOCKSTEP_BLOCKS_H

#include <stdlib.h>

#include "common.h"

enum { BLOCK_BYTES = 1 << 18 };

typedef struct Block {
    struct Block *next;
    int64_t room[]; /* for the alignment */
} Block;

typedef struct {
    Block *first;
    size_t left; /* bytes free in the first block */
} Blocks;

/* `bytes` bytes that no other piece has, or null without memory. */
INLINE void *take_piece(Blocks *blocks, size_t bytes) {
    bytes = (bytes + 7) & ~(size_t)7;
    if (!blocks->first || blocks->left < bytes) {
        const size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        Block *block = malloc(sizeof *block + size);
        if (!block) return 0;
        block->next = blocks->first;
        blocks->first = block;
        blocks->left = size;
    }
    blocks->left -= bytes;
    return (uint8_t *)blocks->first->room + blocks->left;
}

INLINE void free_blocks(Blocks *blocks) {
    while (blocks->first) {
        Block *next = blocks->first->next;
        free(blocks->first);
        blocks->first = next;
    }
}

#endif
