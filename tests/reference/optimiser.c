/* optimiser.c - SGD and Adam as torch.optim defines them: weight decay is L2,
 * added to the gradient; Adam's betas are 0.9 and 0.999, its epsilon 1e-8. */
#include <math.h>
#include <string.h>

#include "reference.h"

static ref_tensors zeros_like(const ref_tensors *t)
{
    ref_tensors out = {t->count, ref_alloc(t->count, sizeof(ref_tensor))};
    for (size_t i = 0; i < t->count; i++) {
        out.tensor[i] = t->tensor[i];
        out.tensor[i].value = ref_alloc(ref_tensor_size(&t->tensor[i]), sizeof(double));
    }
    return out;
}

ref_optimiser ref_optimiser_new(const char *name, double lr, double weight_decay, const ref_network *n)
{
    ref_optimiser o = {.adam = strcmp(name, "adam") == 0, .lr = lr, .weight_decay = weight_decay};
    if (!o.adam && strcmp(name, "sgd") != 0)
        ref_die("--optimizer %s: sgd or adam", name);
    o.first = zeros_like(&n->weight);
    o.second = zeros_like(&n->weight);
    return o;
}

void ref_optimiser_free(ref_optimiser *o)
{
    ref_tensors_free(&o->first);
    ref_tensors_free(&o->second);
}

void ref_optimiser_step(ref_optimiser *o, ref_network *n)
{
    const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    o->step++;
    const double scale1 = 1.0 - pow(beta1, (double)o->step), scale2 = 1.0 - pow(beta2, (double)o->step);
    for (size_t i = 0; i < n->weight.count; i++) {
        double *w = n->weight.tensor[i].value, *m = o->first.tensor[i].value, *v = o->second.tensor[i].value;
        for (size_t k = 0; !n->weight.tensor[i].fixed && k < ref_tensor_size(&n->weight.tensor[i]); k++) {
            const double g = n->gradient.tensor[i].value[k] + o->weight_decay * w[k];
            m[k] = beta1 * m[k] + (1.0 - beta1) * g;
            v[k] = beta2 * v[k] + (1.0 - beta2) * g * g;
            w[k] -= o->adam ? o->lr * (m[k] / scale1) / (sqrt(v[k] / scale2) + epsilon) : o->lr * g;
        }
    }
}
