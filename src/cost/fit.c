/* fit.c - coefficients by least squares over tasks that were timed.
 *
 * As DAHA fits its cost model on the machine's own runs. Amounts are scaled to equal
 * size before the equations are solved, as they differ by nine orders of magnitude. A
 * coefficient that would be negative is held at 0 and the rest solved again (seven unknowns: no
 * more is needed), and a small ridge holds what the observations do not determine at its prior.
 */
#include <math.h>
#include <string.h>

#include "cost/cost.h"

#define RIDGE 1e-4

void gs_fit_add(gs_fit *f, const gs_work *w, double seconds, double expected, double tasks)
{
    const uint32_t n = gs_work_amounts(w->kind);
    if (!(seconds >= 0) || !isfinite(seconds) || !(expected > 0) || !isfinite(expected))
        return;
    f->tasks[w->kind] += tasks;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            f->square[w->kind][i][j] += w->amount[i] * w->amount[j] / expected;
        f->product[w->kind][i] += w->amount[i] * seconds / expected;
    }
}

void gs_fit_add_newer(gs_fit *f, double share, const gs_fit *newer)
{
    for (int k = 0; k < GS_WORK_KINDS; k++) {
        f->tasks[k] = f->tasks[k] * share + newer->tasks[k];
        for (int i = 0; i < GS_WORK_AMOUNTS; i++) {
            for (int j = 0; j < GS_WORK_AMOUNTS; j++)
                f->square[k][i][j] = f->square[k][i][j] * share + newer->square[k][i][j];
            f->product[k][i] = f->product[k][i] * share + newer->product[k][i];
        }
    }
}

/* Gauss with partial pivoting; false where the matrix is singular. */
static bool solve(double a[GS_WORK_AMOUNTS][GS_WORK_AMOUNTS + 1], uint32_t n)
{
    for (uint32_t c = 0; c < n; c++) {
        uint32_t pivot = c;
        for (uint32_t r = c + 1; r < n; r++)
            pivot = fabs(a[r][c]) > fabs(a[pivot][c]) ? r : pivot;
        if (!(fabs(a[pivot][c]) > 1e-12))
            return false;
        for (uint32_t k = 0; k <= n; k++) {
            const double swap = a[c][k];
            a[c][k] = a[pivot][k];
            a[pivot][k] = swap;
        }
        for (uint32_t r = 0; r < n; r++) {
            const double by = r == c ? 0 : a[r][c] / a[c][c];
            for (uint32_t k = c; by != 0 && k <= n; k++)
                a[r][k] -= by * a[c][k];
        }
    }
    for (uint32_t c = 0; c < n; c++)
        a[c][n] /= a[c][c];
    return true;
}

/* Solves for the amounts in `used`; x of the others is 0. */
static bool solve_used(const gs_fit *f, const gs_cost *prior, gs_work_kind k, const bool *used, double *x)
{
    double a[GS_WORK_AMOUNTS][GS_WORK_AMOUNTS + 1], scale[GS_WORK_AMOUNTS];
    uint32_t at[GS_WORK_AMOUNTS], n = 0;

    for (uint32_t i = 0; i < gs_work_amounts(k); i++)
        if (used[i]) {
            scale[n] = sqrt(f->square[k][i][i]);
            at[n++] = i;
        }
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t c = 0; c < n; c++)
            a[r][c] = f->square[k][at[r]][at[c]] / (scale[r] * scale[c]) + (r == c ? RIDGE : 0);
        a[r][n] = f->product[k][at[r]] / scale[r] + RIDGE * prior->seconds[k][at[r]] * scale[r];
    }
    memset(x, 0, GS_WORK_AMOUNTS * sizeof(*x));
    if (n == 0 || !solve(a, n))
        return false;
    for (uint32_t r = 0; r < n; r++)
        x[at[r]] = a[r][n] / scale[r];
    return true;
}

static bool fit_kind(const gs_fit *f, gs_cost *c, gs_work_kind k)
{
    const uint32_t n = gs_work_amounts(k);
    bool used[GS_WORK_AMOUNTS] = {false};
    double x[GS_WORK_AMOUNTS];

    for (uint32_t i = 0; i < n; i++)
        used[i] = f->square[k][i][i] > 0;
    for (;;) {
        uint32_t worst = n;
        if (!solve_used(f, c, k, used, x))
            return false;
        for (uint32_t i = 0; i < n; i++) /* by what it takes away, in seconds */
            if (x[i] < 0 &&
                (worst == n || x[i] * sqrt(f->square[k][i][i]) < x[worst] * sqrt(f->square[k][worst][worst])))
                worst = i;
        if (worst == n)
            break;
        used[worst] = false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (f->square[k][i][i] > 0) /* what never occurred keeps its prior */
            c->seconds[k][i] = x[i];
    return true;
}

void gs_fit_solve(const gs_fit *f, gs_cost *c)
{
    for (int k = 0; k < GS_WORK_KINDS; k++)
        if (f->tasks[k] >= GS_FIT_TASKS && fit_kind(f, c, (gs_work_kind)k))
            c->source[k] = GS_COST_FITTED;
}
