/* New first tours for a search (app/search/tour/search.py). */
#include "random.h"
#include "tour.h"

enum { DROPPED = 3, OF = 10 }; /* the share of the edges that are left out */

/* Pieces of the shortest edges, a share of them left out at random, one after the other in the order of `base`.
 * edges [count][2] shortest first; links [n][2], far [n] are room: a city's neighbours, the other end of its piece.
 * order [n] is filled. app/search/tour/start.py does the same. */
void lk_tour_pieces(int64_t n, int64_t count, const int32_t *edges, const int32_t *base, uint64_t *random,
                    int32_t *links, int32_t *far, int32_t *order) {
    for (int64_t city = 0; city < n; ++city) {
        links[2 * city] = links[2 * city + 1] = -1;
        far[city] = (int32_t)city;
    }
    for (int64_t i = 0; i < count; ++i) {
        if (random_below(random, OF) < DROPPED) continue;
        const int32_t a = edges[2 * i], b = edges[2 * i + 1];
        if (links[2 * a + 1] >= 0 || links[2 * b + 1] >= 0 || far[a] == b) continue;
        links[2 * a + (links[2 * a] >= 0)] = b;
        links[2 * b + (links[2 * b] >= 0)] = a;
        const int32_t far_a = far[a], far_b = far[b];
        far[far_a] = far_b;
        far[far_b] = far_a;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
        int32_t city = base[i], before = -1;
        if (links[2 * city + 1] >= 0 || far[city] < 0) continue;
        far[far[city]] = -1; /* the piece is not begun from its other end */
        while (city >= 0) {
            order[at++] = city;
            const int32_t next = links[2 * city + (links[2 * city] == before)];
            before = city;
            city = next;
        }
    }
}
