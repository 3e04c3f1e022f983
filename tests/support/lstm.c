/* lstm.c - see lstm.h. Backward keeps every step's gates: sequences of tests are short. */
#include "support/lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { I, F, G, O };

typedef struct step {
    double *gate[4]; /* [h] each, after sigmoid and tanh */
    double *c, *h;   /* after the step */
} step;

static double sigmoid(double a) { return 1 / (1 + exp(-a)); }

/* The step after `before` (its c and h). */
static void advance(step *s, const step *before, const double *x, const double *w, uint32_t h)
{
    for (uint32_t j = 0; j < h; j++)
        for (uint32_t k = I; k <= O; k++) {
            double a = x[k * h + j];
            for (uint32_t c = 0; c < h; c++)
                a += before->h[c] * w[(size_t)(k * h + j) * h + c];
            s->gate[k][j] = k == G ? tanh(a) : sigmoid(a);
        }
    for (uint32_t j = 0; j < h; j++) {
        s->c[j] = s->gate[F][j] * before->c[j] + s->gate[I][j] * s->gate[G][j];
        s->h[j] = s->gate[O][j] * tanh(s->c[j]);
    }
}

/* [steps + 1] of them; the first is the state before any step. */
static step *all_steps(const lstm_sequence *q, const double *state, const double *cell)
{
    const uint32_t h = q->h;
    step *s = calloc(q->steps + 1, sizeof(*s));
    double *room = calloc((size_t)(q->steps + 1) * 6 * h, sizeof(*room));
    for (uint32_t t = 0; t <= q->steps; t++) {
        for (uint32_t k = 0; k < 4; k++)
            s[t].gate[k] = room + ((size_t)t * 6 + k) * h;
        s[t].c = room + ((size_t)t * 6 + 4) * h;
        s[t].h = room + ((size_t)t * 6 + 5) * h;
        if (t > 0)
            advance(&s[t], &s[t - 1], q->x[t - 1], q->w, h);
        else {
            memcpy(s[t].c, cell, h * sizeof(*cell));
            memcpy(s[t].h, state, h * sizeof(*state));
        }
    }
    return s;
}

static void free_steps(step *s)
{
    free(s[0].gate[0]);
    free(s);
}

void lstm_forward(const lstm_sequence *q, double *state, double *cell)
{
    step *s = all_steps(q, state, cell);
    memcpy(state, s[q->steps].h, q->h * sizeof(*state));
    memcpy(cell, s[q->steps].c, q->h * sizeof(*cell));
    free_steps(s);
}

/* dh and dc after step t become those before it; da[4h]: gradient of what goes into the gates. */
static void retreat(double *da, double *dh, double *dc, const step *s, const step *before, const double *w, uint32_t h)
{
    for (uint32_t j = 0; j < h; j++) {
        const double i = s->gate[I][j], f = s->gate[F][j], g = s->gate[G][j], o = s->gate[O][j], t = tanh(s->c[j]);
        dc[j] += dh[j] * o * (1 - t * t);
        da[I * h + j] = dc[j] * g * i * (1 - i);
        da[F * h + j] = dc[j] * before->c[j] * f * (1 - f);
        da[G * h + j] = dc[j] * i * (1 - g * g);
        da[O * h + j] = dh[j] * t * o * (1 - o);
        dc[j] *= f;
    }
    for (uint32_t c = 0; c < h; c++) {
        dh[c] = 0;
        for (uint32_t k = 0; k < 4 * h; k++)
            dh[c] += da[k] * w[(size_t)k * h + c];
    }
}

void lstm_backward(const lstm_sequence *q, const double *state, const double *cell, double *d_state, double *d_cell,
                   double *const *dx, double *dw)
{
    const uint32_t h = q->h;
    step *s = all_steps(q, state, cell);
    double *da = calloc(4 * (size_t)h, sizeof(*da));
    for (uint32_t t = q->steps; t > 0; t--) {
        retreat(da, d_state, d_cell, &s[t], &s[t - 1], q->w, h);
        for (uint32_t k = 0; k < 4 * h; k++) {
            dx[t - 1][k] += da[k];
            for (uint32_t c = 0; dw != NULL && c < h; c++)
                dw[(size_t)k * h + c] += da[k] * s[t - 1].h[c];
        }
    }
    free(da);
    free_steps(s);
}
