/* Plain lines of two node ids, perhaps with a weight, lines of whole numbers, and lines of two names. The parsers stop at
 * the first line that is anything else and say where: what is unusual, or wrong, is left to app/graphs/formats (text.py,
 * metis.py, named_edges.py), so that there is one place that words errors. */
#include <math.h>
#include <stdlib.h>

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

/* From the end of a field to the start of the next one, or NULL: blanks, or a comma that may have some around it. */
INLINE const uint8_t *next_field(const uint8_t *p, const uint8_t *end, int comma) {
    const uint8_t *q = skip_blanks(p, end);
    if (comma) return q < end && *q == ',' ? skip_blanks(q + 1, end) : 0;
    return q == p ? 0 : q;
}

INLINE int is_digit(const uint8_t *p, const uint8_t *end) { return p < end && (uint8_t)(*p - '0') <= 9; }

enum { LONGEST_EXPONENT = 4 };

static const double POWERS[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
/* Half a unit in the last place above the largest float: from here on a number becomes infinite in 32 bits. */
static const double TOO_LARGE = 3.4028235677973366e38;

/* Reads a weight at p: a sign, digits, with `real` also a point and an exponent. Returns where it ends, or NULL where it
 * is none, or infinite in 32 bits, or a whole number that 64-bit floats do not all hold.
 * A number of at most 2^53 times a power of ten up to 10^22 is one product or quotient of numbers that are exact, so
 * rounded once (Clinger 1990, "How to Read Floating Point Numbers Accurately"); others are left to strtod, which rounds
 * correctly, too. */
INLINE const uint8_t *read_weight(const uint8_t *p, const uint8_t *end, int real, double *weight) {
    const uint8_t *start = p;
    const int sign = p < end && (*p == '-' || *p == '+'), negative = sign && *p == '-';
    uint64_t value = 0;
    int64_t digits = 0, exact = 1, scale = 0, exponent = 0;
    p += sign;
    for (int point = 0;; ++p) {
        if (is_digit(p, end)) {
            if (value > (UINT64_MAX >> 5)) exact = 0;
            else value = value * 10 + (uint64_t)(*p - '0');
            ++digits;
            scale -= point;
        } else if (real && !point && p < end && *p == '.') {
            point = 1;
        } else {
            break;
        }
    }
    if (!digits) return 0;
    if (real && p < end && (*p == 'e' || *p == 'E')) {
        const int below = p + 1 < end && p[1] == '-', some = below || (p + 1 < end && p[1] == '+');
        int64_t length = 0;
        for (p += 1 + some; is_digit(p, end) && length <= LONGEST_EXPONENT; ++p, ++length)
            exponent = exponent * 10 + (*p - '0');
        if (!length || length > LONGEST_EXPONENT) return 0;
        scale += below ? -exponent : exponent;
    }
    if (exact && value <= (1ull << 53) && scale >= -22 && scale <= 22) {
        *weight = scale < 0 ? (double)value / POWERS[-scale] : (double)value * POWERS[scale];
        if (negative) *weight = -*weight;
    } else {
        char *stop;
        if (p == end || (!sign && digits == p - start)) return 0;
        *weight = strtod((const char *)start, &stop);
        if ((const uint8_t *)stop != p) return 0; /* a locale with another point */
    }
    return fabs(*weight) < TOO_LARGE ? p : 0;
}

/* What a line is: fields between commas or blanks, with a weight or without, which may be real. */
typedef struct {
    uint8_t letter;
    int comma, weighted, real;
} Form;

INLINE const uint8_t *read_line(const uint8_t *p, const uint8_t *end, Form form, uint64_t *u, uint64_t *v, double *w) {
    if (form.letter) {
        if (end - p < 2 || *p != form.letter || (p[1] != ' ' && p[1] != '\t')) return 0;
        p = skip_blanks(p + 1, end);
    }
    if (!(p = read_digits(p, end, u))) return 0;
    if (!(p = next_field(p, end, form.comma))) return 0;
    if (!(p = read_digits(p, end, v))) return 0;
    if (form.weighted) {
        if (!(p = next_field(p, end, form.comma))) return 0;
        if (!(p = read_weight(p, end, form.real, w))) return 0;
    }
    return line_end(skip_blanks(p, end), end);
}

/* The line after one at p, its blanks skipped, that holds nothing or a comment; NULL where it is anything else. */
INLINE const uint8_t *skip_line(const uint8_t *p, const uint8_t *end, const uint8_t *comments) {
    const uint8_t *next = line_end(p, end);
    if (next) return next;
    if (p == end || !*p || (*p != comments[0] && *p != comments[1])) return 0;
    return skip_comment(p, end);
}

INLINE void parse(const uint8_t *text, int64_t length, int64_t first, int64_t last, const uint8_t *comments, Form form,
                  int64_t most, int64_t *u, int64_t *v, double *w, int64_t *done) {
    const uint8_t *at = text, *end = text + length, *next;
    int64_t rows = 0;
    for (; at < end && rows < most; at = next) {
        const uint8_t *p = skip_blanks(at, end);
        uint64_t a, b;
        double c;
        if ((next = read_line(p, end, form, &a, &b, &c))) {
            if ((int64_t)a < first || (int64_t)a > last || (int64_t)b < first || (int64_t)b > last) break;
            u[rows] = (int64_t)a - first;
            v[rows] = (int64_t)b - first;
            if (form.weighted) w[rows] = c;
            ++rows;
        } else if (!(next = skip_line(p, end, comments))) {
            break;
        }
    }
    done[0] = rows;
    done[1] = at - text;
}

/* Reads lines "u v" (with a letter: "e u v"; with `comma`: "u,v"), or "u v w" where w is not 0, from text[0..length-1],
 * behind which a byte of 0 has to stand, with ids first..last; the first id becomes 0. Weights may have a point and an
 * exponent where they are `real`. Blank lines, and lines that start with one of the two comment characters, are skipped
 * (0: none). done[0]: rows stored in u, v, w, at most `most`; done[1]: bytes of the whole lines that were understood. */
void lk_parse_rows(const uint8_t *text, int64_t length, int64_t first, int64_t last, const uint8_t *comments,
                   int64_t letter, int64_t comma, int64_t real, int64_t most, int64_t *u, int64_t *v, double *w,
                   int64_t *done) {
    const uint8_t e = (uint8_t)letter;
    if (w && comma) parse(text, length, first, last, comments, (Form){e, 1, 1, real != 0}, most, u, v, w, done);
    else if (w) parse(text, length, first, last, comments, (Form){e, 0, 1, real != 0}, most, u, v, w, done);
    else if (comma) parse(text, length, first, last, comments, (Form){e, 1, 0, 0}, most, u, v, w, done);
    else parse(text, length, first, last, comments, (Form){e, 0, 0, 0}, most, u, v, w, done);
}

/* Reads lines of whole numbers between blanks, as many on each as there are. Lines that start with the comment character
 * are no lines. values [most], counts [most]: all numbers, and how many stand on each line, blank ones included.
 * done: numbers, lines, and bytes of the whole lines that were understood. */
void lk_parse_numbers(const uint8_t *text, int64_t length, int64_t comment, int64_t most, int64_t *values,
                      int64_t *counts, int64_t *done) {
    const uint8_t *at = text, *end = text + length, *next, comments[2] = {(uint8_t)comment, 0};
    int64_t held = 0, lines = 0;
    for (; at < end && lines < most; at = next) {
        const uint8_t *p = skip_blanks(at, end);
        const int64_t before = held;
        if (!line_end(p, end) && (next = skip_line(p, end, comments))) continue;
        while (!(next = line_end(p, end))) {
            uint64_t value;
            const uint8_t *q = held < most ? read_digits(p, end, &value) : 0;
            if (!q || (!line_end(q, end) && q == skip_blanks(q, end))) break;
            values[held++] = (int64_t)value;
            p = skip_blanks(q, end);
        }
        if (!next) {
            held = before;
            break;
        }
        counts[lines++] = held - before;
    }
    done[0] = held;
    done[1] = lines;
    done[2] = at - text;
}

/* A sum over entries (u, v) that is 0 modulo 2^64 if each has its mirror (v, u), and else almost never
 * (app/graphs/formats/metis.py). */
WIDE uint64_t lk_mirror_sum(const int64_t *u, const int64_t *v, int64_t k) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
        const uint64_t low = (uint64_t)(u[i] < v[i] ? u[i] : v[i]), high = (uint64_t)(u[i] < v[i] ? v[i] : u[i]);
        uint64_t mixed = low * 0x9E3779B97F4A7C15ull ^ high * 0xC2B2AE3D27D4EB4Full;
        mixed = (mixed ^ mixed >> 31) * 0xD6E8FEB86659FD93ull;
        mixed ^= mixed >> 32;
        sum += u[i] < v[i] ? mixed : u[i] > v[i] ? 0 - mixed : 0;
    }
    return sum;
}

/* ---- names ---- */

enum { LONGEST_NAME = 255 };

/* Names by number, and a table of these numbers by hash (app/graphs/formats/name_table.py).
 *   letters, starts   name i is letters[starts[i]..starts[i+1]-1]; there are `count`, room for `most`, `room` bytes
 *   table             the upper half of a hash over a number + 1, or 0: free; slots + 1 places, a power of two, of which
 *                     some stay free */
typedef struct {
    uint8_t *letters;
    int64_t *starts;
    uint64_t *table;
    int64_t count, most, room, slots;
    uint64_t salt[2];
} Names;

typedef struct {
    const uint8_t *letters;
    int64_t length;
    uint64_t hash;
} Name;

INLINE uint64_t hash_name(const uint8_t *p, int64_t length, const uint64_t *salt) {
    uint64_t h = (uint64_t)length * 0x9E3779B97F4A7C15ull;
    for (int64_t i = 0; i < length; i += 8) {
        uint64_t w = 0;
        if (length - i >= 8) memcpy(&w, p + i, 8);
        else
            for (int64_t j = length - 1; j >= i; --j) w = w << 8 | p[j];
        h = salted(h ^ w, salt);
    }
    return salted(h, salt);
}

/* The place of a name in the table: where it is, or a free one where it would be. */
INLINE int64_t place_of(const Names *names, const Name *name) {
    for (int64_t at = (int64_t)(name->hash & (uint64_t)names->slots);; at = (at + 1) & names->slots) {
        const uint64_t held = names->table[at];
        if (!held) return at;
        if (held >> 32 != name->hash >> 32) continue;
        const int64_t start = names->starts[(uint32_t)held - 1], stop = names->starts[(uint32_t)held];
        if (stop - start == name->length && !memcmp(names->letters + start, name->letters, (size_t)name->length))
            return at;
    }
}

INLINE int64_t number_of(Names *names, const Name *name) {
    const int64_t at = place_of(names, name);
    if (!names->table[at]) {
        const int64_t start = names->starts[names->count];
        memcpy(names->letters + start, name->letters, (size_t)name->length);
        names->starts[++names->count] = start + name->length;
        names->table[at] = name->hash >> 32 << 32 | (uint32_t)names->count;
    }
    return (int64_t)(uint32_t)names->table[at] - 1;
}

/* Fills an empty table with the names that there are. */
void lk_fill_names(Names *names) {
    for (int64_t i = 0; i < names->count; ++i) {
        const uint8_t *letters = names->letters + names->starts[i];
        const int64_t length = names->starts[i + 1] - names->starts[i];
        const Name name = {letters, length, hash_name(letters, length, names->salt)};
        names->table[place_of(names, &name)] = name.hash >> 32 << 32 | (uint32_t)(i + 1);
    }
}

/* out [count, width]: the names, zeros behind them. */
void lk_spread_names(const Names *names, int64_t width, uint8_t *out) {
    for (int64_t i = 0; i < names->count; ++i) {
        const int64_t start = names->starts[i], length = names->starts[i + 1] - start;
        memcpy(out + i * width, names->letters + start, (size_t)length);
        memset(out + i * width + length, 0, (size_t)(width - length));
    }
}

INLINE const uint8_t *skip_spaces(const uint8_t *p, const uint8_t *end) {
    while (p < end && *p == ' ') ++p;
    return p;
}

/* The end of the field that starts at p: of a name, with blanks behind it. */
INLINE const uint8_t *field_end(const uint8_t *p, const uint8_t *end, uint8_t between) {
    while (p < end && *p != '\n' && *p != between && !(between == ' ' && *p == '\t')) ++p;
    return p;
}

/* A name at p, without blanks around it, and where what parts it from the next field begins; NULL: it is none. */
INLINE const uint8_t *read_name(const uint8_t *p, const uint8_t *end, uint8_t between, const uint64_t *salt,
                                Name *name) {
    const uint8_t *start = skip_spaces(p, end), *stop = field_end(start, end, between), *last = stop;
    while (last > start && last[-1] == ' ') --last;
    const int64_t length = last - start;
    if (!length || length > LONGEST_NAME || *start == '#' || *start == '%') return 0;
    if (between == ',' && memchr(start, '"', (size_t)length)) return 0;
    *name = (Name){start, length, hash_name(start, length, salt)};
    return stop;
}

/* From the end of a field to the next one; NULL: there is none. */
INLINE const uint8_t *after_mark(const uint8_t *p, const uint8_t *end, uint8_t between) {
    if (between == ' ') {
        const uint8_t *q = skip_blanks(p, end);
        return q == p || q == end || *q == '\n' ? 0 : q;
    }
    return p < end && *p == between ? skip_spaces(p + 1, end) : 0;
}

INLINE const uint8_t *ends_line(const uint8_t *p, const uint8_t *end, uint8_t between) {
    return line_end(between == ' ' ? skip_blanks(p, end) : skip_spaces(p, end), end);
}

/* A line of two names at `at`, and a weight where w is not 0: the next line, or NULL where it is none. */
INLINE const uint8_t *read_names(const uint8_t *at, const uint8_t *end, uint8_t between, const uint64_t *salt,
                                 Name *two, double *w) {
    const uint8_t *p = between == ' ' ? skip_blanks(at, end) : at; /* a tab at the start has an empty name before it */
    if (!(p = read_name(p, end, between, salt, two)) || !(p = after_mark(p, end, between))) return 0;
    if (!(p = read_name(p, end, between, salt, two + 1))) return 0;
    if (w && (!(p = after_mark(p, end, between)) || !(p = read_weight(p, end, 1, w)))) return 0;
    return ends_line(p, end, between);
}

enum { LINES = 32 };

/* Reads lines of two names, or of two and a weight where w is not 0, between commas, tabs or blanks; blank lines are
 * skipped. ends [2 * most]: their numbers, those of new names the next ones. As lk_parse_rows needs the text.
 * done[0]: rows; done[1]: bytes of the whole lines that were understood; done[2]: 1 where more room for names is needed.
 * Some lines are looked at before their names are looked for, so that the table is near by then. */
void lk_parse_names(const uint8_t *text, int64_t length, int64_t between, int64_t most, Names *names, int64_t *ends,
                    double *w, int64_t *done) {
    const uint8_t *at = text, *end = text + length, *after[LINES];
    const uint8_t mark = (uint8_t)between;
    Name two[2 * LINES];
    int64_t rows = 0, count = LINES;
    done[2] = 0;
    while (count == LINES && !done[2]) {
        const uint8_t *next, *p = at;
        for (count = 0; count < LINES && p < end && rows + count < most; p = next) {
            if ((next = line_end(skip_blanks(p, end), end))) {
                if (!count) at = next;
                continue;
            }
            if (!(next = read_names(p, end, mark, names->salt, two + 2 * count, w ? w + rows + count : 0))) break;
            for (int64_t i = 2 * count; i < 2 * count + 2; ++i)
                __builtin_prefetch(names->table + (two[i].hash & (uint64_t)names->slots));
            after[count++] = next;
        }
        for (int64_t i = 0; i < count; ++i) {
            const Name *pair = two + 2 * i;
            const int64_t due = names->starts[names->count] + pair[0].length + pair[1].length;
            if ((done[2] = names->count + 2 > names->most || due > names->room)) break;
            ends[2 * rows] = number_of(names, pair);
            ends[2 * rows++ + 1] = number_of(names, pair + 1);
            at = after[i];
        }
    }
    while (!done[2] && at < end && (after[0] = line_end(skip_blanks(at, end), end))) at = after[0];
    done[0] = rows;
    done[1] = at - text;
}
