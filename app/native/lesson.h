/* Lessons of learners in a call or two: what app/rl/qnet.py, node_head.py and app/gnn/structure2vec.py do on one rank. */
#ifndef LOCKSTEP_LESSON_H
#define LOCKSTEP_LESSON_H

#include "lanes.h"

enum { MOST_ROUNDS = 16 };

/* The network, and where its weights begin in a flat vector of them: W of each round (all the same where they are
 * shared), the head's theta5, theta6, theta7a (-1: the head is "mixing") and theta7b, and theta2 of the edges (-1: their
 * weights are not read). `paper`: the head has no features, and every node has an embedding. */
typedef struct {
    int64_t layers, K, F, hidden, self_weight, shared, paper;
    int64_t W[MOST_ROUNDS], theta5, theta6, theta7a, theta7b, theta2, size;
} Network;

/* The rows of one graph: as in lk_spmm_members, then nodes, entries of its feature tables, the first nodes of its blocks
 * [blocks + 1], and one over the degrees [rows] (addresses). Matrices of the positive and of the negated negative weights in
 * float32 (no offsets: all weights are one, none is negative). Of states with two sides how nodes start [rows] int8, the rows of
 * their weights in units as int64 (no values: the graph's own rows, all one), what gains are measured in, and a rest in moves. Of
 * families the marks and fields of the first state [rows] int8 and int32, and the looks [rows] int64. */
enum {
    N_ROWS, N_COLUMNS, IS_WIDE, INDPTR, INDICES, N_REAL, ENTRIES, BLOCK_STARTS, INVERSE_DEGREES,
    PLUS, /* wide, offsets, columns, values */
    MINUS = PLUS + 4,
    START = MINUS + 4, UNITS_WIDE, UNITS_INDPTR, UNITS_INDICES, UNITS, GRAIN, REST, FIELD, LOOK,
    GRAPH_FIELDS
};

/* What a node looks like is told from its live neighbours; from marks of its own and of them; from sides and gains; or, of
 * families, from marks and what does not change (family.h). */
enum { BY_DEGREE, BY_GAIN, BY_SIDES, BY_FAMILY };

/* What the graphs and the problem are, for as long as they are learned from. */
typedef struct {
    int64_t graphs, blocks, first_candidate, tile;
    const int64_t *graph; /* [graphs][GRAPH_FIELDS] */
    int64_t codes;        /* how they are made here */
    int64_t closed;       /* choices remove their neighbours, too */
    int64_t least;        /* and nodes with fewer live neighbours fall, until there are none */
    int64_t parts, ages;  /* of sides: the largest gain, in parts of a grain, and age in rests that are told from others */
    const int32_t *code_of; /* [ages + 1][2 parts + 1][2] by age, gain, and whether the side is -1 */
    int64_t by_weight;    /* weights of edges are read, and are more than degrees */
    int64_t owns;         /* features that are numbers of a state, the same for all nodes with an embedding */
    const int64_t *own;   /* [owns] which; their tables have ones there */
    int64_t entries;      /* of a stored table; a multiple of 8 */
    int64_t looks;        /* stored tables */
    const float *tables;  /* [looks][entries][F], features by code */
    const float *factors; /* [looks][entries] or [looks], by which neighbour sums are multiplied; null: by one, or degrees */
    int64_t by_entry;     /* which of the two */
    int64_t by_degree;    /* 1: by the inverse degrees of the graphs */
} World;

/* States, those of a graph one behind the other: they are rows side by side unless they are `apart`. every: the codes
 * give every node an embedding. draws: there is a softmax over their candidates. */
typedef struct {
    int64_t states, apart, every, draws;
    const int64_t *graph; /* [states] */
    int64_t rows, members, entries;
} Sample;

/* How the states of a sample look before or after. */
typedef struct {
    const int32_t *look;   /* [states] */
    const float *own;      /* [states][owns] */
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

/* States in which a policy chose `nodes`. First come log pi of the choices, the entropies and the values of the states; from their
 * derivatives the addends of the gradient (PolicyAddends), the sum of which over all parts of a minibatch becomes the gradient.
 * value: a linear head of the pooled embeddings, its weights [K] and its constant, or null. */
typedef struct {
    const Network *net;
    const World *world;
    Sample *sample;
    const Look *look;
    const float *weights, *value;
    const int64_t *nodes;
    float *log_probability, *entropy, *values; /* [states] */
    const float *dlog, *dentropy, *dvalue;     /* [states] */
    float *addends, *gradient;                 /* [lk_policy_addends], [size], and [K + 1] where there is a value */
} PolicyLesson;

#endif
