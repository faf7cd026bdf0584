/* Plain lines of two node ids. The parser stops at the first line that is anything else and says where: what is
 * unusual, or wrong, is left to app/graphs/formats/text.py, so that there is one place that words errors. */
#include "common.h"

enum { MOST_DIGITS = 18 }; /* so that a number stays below 2^63 */

static const uint64_t TEN_TO[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* The number that eight digits spell; the first one is in the lowest byte, each byte holds 0..9. */
INLINE uint64_t eight_digits(uint64_t w) {
    w = (w * 10 + (w >> 8)) & 0x00FF00FF00FF00FFull;
    w = (w * 100 + (w >> 16)) & 0x0000FFFF0000FFFFull;
    return (w * 10000 + (w >> 32)) & 0xFFFFFFFFull;
}

/* The bytes at p, the first in the lowest byte: eight of them, or as many as there are before `end`, then zeros. */
INLINE uint64_t load8(const uint8_t *p, const uint8_t *end) {
    uint64_t w = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - p >= 8) {
        memcpy(&w, p, 8);
        return w;
    }
#endif
    for (int i = 0; i < 8 && p + i < end; ++i) w |= (uint64_t)p[i] << (8 * i);
    return w;
}

INLINE int lowest_byte(uint64_t marks) { /* the lowest byte whose top bit is set; marks is not 0 */
#if defined(__GNUC__)
    return __builtin_ctzll(marks) >> 3;
#else
    int i = 0;
    while (!(marks >> (8 * i) & 0x80)) ++i;
    return i;
#endif
}

/* Reads digits at p; returns where they end, or NULL without any or with more than MOST_DIGITS. */
INLINE const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *number) {
    uint64_t value = 0;
    int digits = 0;
    for (;;) {
        const uint64_t w = load8(p, end) ^ 0x3030303030303030ull;
        /* The lowest mark is right; a carry can only falsify those above it. */
        const uint64_t other = ((w + 0x7676767676767676ull) | w) & 0x8080808080808080ull;
        const int k = other ? lowest_byte(other) : 8;
        if (k) value = value * TEN_TO[k] + eight_digits(w << (64 - 8 * k));
        digits += k;
        p += k;
        if (k < 8 || digits > MOST_DIGITS) break;
    }
    *number = value;
    return digits && digits <= MOST_DIGITS ? p : 0;
}

INLINE const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *end) {
    while (p < end && (*p == ' ' || *p == '\t')) ++p;
    return p;
}

/* Past the line end at p, or NULL where there is none. CR LF has become LF before: what is left of CR is wrong. */
INLINE const uint8_t *line_end(const uint8_t *p, const uint8_t *end) {
    return p < end && *p == '\n' ? p + 1 : 0;
}

/* Past a comment's line, or NULL where it is not ended or holds a NUL. */
static const uint8_t *skip_comment(const uint8_t *p, const uint8_t *end) {
    const uint8_t *stop = memchr(p, '\n', (size_t)(end - p));
    return stop && !memchr(p, 0, (size_t)(stop - p)) ? stop + 1 : 0;
}

INLINE const uint8_t *read_line(const uint8_t *p, const uint8_t *end, uint8_t letter, uint64_t *u, uint64_t *v) {
    const uint8_t *q;
    if (letter) {
        if (end - p < 2 || *p != letter || (p[1] != ' ' && p[1] != '\t')) return 0;
        p = skip_blanks(p + 1, end);
    }
    if (!(p = read_digits(p, end, u))) return 0;
    if ((q = skip_blanks(p, end)) == p) return 0;
    if (!(p = read_digits(q, end, v))) return 0;
    return line_end(skip_blanks(p, end), end);
}

/* Reads lines "u v" (with a letter: "e u v") from text[0..length-1], with ids first..last; the first id becomes 0.
 * Blank lines, and lines that start with one of the two comment characters, are skipped (0: none).
 * done[0]: rows stored in u, v, at most `most`; done[1]: bytes of the whole lines that were understood. */
void lk_parse_pairs(const uint8_t *text, int64_t length, int64_t first, int64_t last, const uint8_t *comments,
                    int64_t letter, int64_t most, int64_t *u, int64_t *v, int64_t *done) {
    const uint8_t *at = text, *end = text + length, *next;
    int64_t rows = 0;
    for (; at < end && rows < most; at = next) {
        const uint8_t *p = skip_blanks(at, end);
        uint64_t a, b;
        if ((next = read_line(p, end, (uint8_t)letter, &a, &b))) {
            if ((int64_t)a < first || (int64_t)a > last || (int64_t)b < first || (int64_t)b > last) break;
            u[rows] = (int64_t)a - first;
            v[rows++] = (int64_t)b - first;
        } else if (!(next = line_end(p, end))) {
            if (p == end || !*p || (*p != comments[0] && *p != comments[1])) break;
            if (!(next = skip_comment(p, end))) break;
        }
    }
    done[0] = rows;
    done[1] = at - text;
}
