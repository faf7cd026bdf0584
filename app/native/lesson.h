/* Lessons of the deep Q-learner in one call: what app/rl/qnet.py and app/gnn/structure2vec.py do on one rank. */
#ifndef LOCKSTEP_LESSON_H
#define LOCKSTEP_LESSON_H

#include "lanes.h"

enum { MOST_ROUNDS = 16 };

/* The network, and where its weights begin in a flat vector of them: W of each round (all the same where they are
 * shared), the head's theta5, theta6, theta7a (-1: the head is "mixing") and theta7b. `paper`: the head has no features,
 * and every node has an embedding. */
typedef struct {
    int64_t layers, K, F, hidden, self_weight, shared, paper;
    int64_t W[MOST_ROUNDS], theta5, theta6, theta7a, theta7b, size;
} Network;

/* The rows of one graph: as in lk_spmm_members, then rows, nodes, entries of its feature tables, the first nodes of its
 * blocks [blocks + 1], and one over the degrees [rows] (addresses). */
enum { N_ROWS, N_COLUMNS, IS_WIDE, INDPTR, INDICES, N_REAL, ENTRIES, BLOCK_STARTS, INVERSE_DEGREES, GRAPH_FIELDS };

/* What the graphs and the problem are, for as long as they are learned from. */
typedef struct {
    int64_t graphs, blocks, first_candidate, tile;
    const int64_t *graph; /* [graphs][GRAPH_FIELDS] */
    int64_t closed;       /* where codes are made here: choices remove their neighbours, too */
    int64_t least;        /* and nodes with fewer live neighbours fall, until there are none */
    int64_t entries;      /* of a stored table; a multiple of 8 */
    int64_t looks;        /* stored tables */
    const float *tables;  /* [looks][entries][F], features by code */
    const float *factors; /* [looks][entries] or [looks], by which neighbour sums are multiplied; null: by one, or degrees */
    int64_t by_entry;     /* which of the two */
    int64_t by_degree;    /* 1: by the inverse degrees of the graphs */
} World;

/* States, those of a graph one behind the other: they are rows side by side unless they are `apart`. every: the codes
 * give every node an embedding. */
typedef struct {
    int64_t states, apart, every;
    const int64_t *graph; /* [states] */
    int64_t rows, members, entries;
} Sample;

/* How the states of a sample look before or after. */
typedef struct {
    const int32_t *look;   /* [states] */
    const int64_t *alive;  /* [states] nodes that an embedding is the mean over */
    const int32_t *code;   /* [rows], or null: made from the choices */
    const int64_t *chosen; /* end to end; state s has those from begin[s] on, `count[s]` of them */
    const int64_t *begin, *count;
} Look;

/* A minibatch of transitions. loss: 1 Huber's, 0 the square; whole: transitions that the loss is a mean over. */
typedef struct {
    const Network *net;
    const World *world;
    Sample *sample;
    const Look *before, *after;
    const float *weights, *target_weights;
    const int64_t *nodes;
    const float *returns, *discounts;
    int64_t twice, huber, whole;
    float *losses, *gradient; /* [states], [size] */
} Lesson;

#endif
