#include "train_options.h"

#define FIELD(name) offsetof(train_command, train.name), #name

void train_command_defaults(void *options)
{
    train_command *const t = options;
    *t = (train_command){0};
    gs_train_options_init(&t->train);
}

const cli_option train_model_options[] = {
    {"--model", CLI_TEXT, FIELD(model), "M",
     "gcn, sage, sage_max, sage_lstm, gat, gatv2, gin, appnp, commnet,\n"
     "ggcn, ggnn, rgcn, rgcn_bases, or the file of a model's text;\nrequired, but where weights say it",
     NULL, 0, 0},
    {"--layers", CLI_COUNT, FIELD(layers), "N", "layers", "the weights'", 1, 64},
    {"--hidden", CLI_COUNT, FIELD(hidden), "N", "width of a hidden layer", "the weights'", 1, 1u << 20},
    {"--heads", CLI_COUNT, FIELD(heads), "N", "attention heads, for models that have them", "the weights'", 1, 1024},
    {"--bases", CLI_COUNT, FIELD(bases), "B",
     "matrices that those of edge types are made of, for models\nthat have them (rgcn_bases)", "4", 1,
     1024},
    {"--act", CLI_TEXT, FIELD(activation), "NAME", "activation between layers", "the weights'", 0, 0},
    {"--dropout", CLI_REAL, FIELD(dropout), "P", "after each hidden layer, and of attention weights; from 0 to below 1",
     NULL, 0, 0},
    {"--input-dropout", CLI_REAL, FIELD(input_dropout), "P", "of the features, from 0 to below 1", NULL, 0, 0},
    {"--norm", CLI_CHOICE, FIELD(norm), "none|batch|layer|layer_node",
     "behind each hidden layer, as PyG's BasicGNN; layer: over\nthe whole graph, as there; layer_node: over a row",
     NULL, 0, 0},
    {"--jk", CLI_CHOICE, FIELD(jk), "none|cat|max|lstm|last", "what the last linear map gets of all layers", NULL, 0,
     0},
    {"--residual", CLI_FLAG, FIELD(residual), NULL, "add what a hidden layer got to what comes of it", NULL, 0, 0},
    {"--act-first", CLI_FLAG, FIELD(act_first), NULL, "the activation before the norm", NULL, 0, 0},
    {"--set", CLI_TEXT, FIELD(set), "NAME=X,...", "constants of the model's text (appnp: alpha=0.2,steps=5)",
     "as it has them", 0, 0},
    {"--ignore-edge-weights", CLI_FLAG, FIELD(ignore_edge_weights), NULL, "each edge counts 1, whatever the store says",
     NULL, 0, 0},
    {0},
};

const cli_option train_task_options[] = {
    {"--task", CLI_CHOICE, FIELD(task), "classify|multilabel|regress",
     "what is learned: one class, several labels, or numbers", "as the store's labels are", 0, 0},
    {"--class-weights", CLI_TEXT, FIELD(class_weights), "balanced|W1,W2,...|W.npy",
     "of classes in the loss; of several labels, of those that\nare there", "1", 0, 0},
    {"--label-smoothing", CLI_REAL, FIELD(label_smoothing), "X", "of classes in the loss, from 0 to below 1", NULL, 0,
     0},
    {0},
};

const cli_option train_batch_options[] = {
    {"--sampler", CLI_CHOICE, FIELD(sampler), "none|neighbor|cluster|saint-node|saint-edge|saint-walk",
     "train on batches that are drawn so; none: the whole graph is\none step", NULL, 0, 0},
    {"--batch-size", CLI_COUNT, FIELD(batch_size), "B",
     "training vertices of a batch; of clusters, intervals of the\nstore; of GraphSAINT, vertices, edges or walks",
     "1024", 1, 1u << 30},
    {"--fanout", CLI_TEXT, FIELD(fanout), "N,N,...",
     "in-edges drawn of each vertex, the targets first, then hop by hop;\n0: all", "needed by neighbor", 0, 0},
    {"--replace", CLI_FLAG, FIELD(replace), NULL, "draw edges with replacement", NULL, 0, 0},
    {"--weighted", CLI_FLAG, FIELD(weighted), NULL, "draw an edge as likely as its weight", NULL, 0, 0},
    {"--by-type", CLI_FLAG, FIELD(by_type), NULL, "the fanout is of each type of edge", NULL, 0, 0},
    {"--walk-length", CLI_COUNT, FIELD(walk_length), "N", "edges of a walk of saint-walk", "2", 1, 4096},
    {"--coverage", CLI_COUNT, FIELD(coverage), "N",
     "of GraphSAINT: draw each vertex N times beforehand, so that losses\nand sums estimate those of the whole graph",
     "0: they are the subgraph's", 0, 10000},
    {"--batches-per-step", CLI_COUNT, FIELD(batches_per_step), "N",
     "batches that are one step: its loss is the mean over\ntheir targets", "one for each device", 1, 1u << 20},
    {"--shuffle", CLI_CHOICE, FIELD(shuffle), "always|never|adaptive",
     "targets, or intervals, in another order in each epoch; never: in\nthe store's, so that less is read; adaptive: "
     "never until the\nloss falls slowly", "always", 0, 0},
    {0},
};

const cli_option train_learning_options[] = {
    {"--epochs", CLI_COUNT, FIELD(epochs), "N", "passes over the whole graph", NULL, 0, 0},
    {"--optimizer", CLI_CHOICE, FIELD(optimizer), "adam|adamw|sgd", "as PyTorch defines them", NULL, 0, 0},
    {"--lr", CLI_REAL, FIELD(lr), "X", "learning rate", NULL, 0, 0},
    {"--weight-decay", CLI_REAL, FIELD(weight_decay), "X", "L2, added to the gradient; of adamw, shrinks the weights",
     NULL, 0, 0},
    {"--momentum", CLI_REAL, FIELD(momentum), "X", "of sgd, from 0 to below 1", NULL, 0, 0},
    {"--clip-norm", CLI_REAL, FIELD(clip_norm), "X", "most 2-norm of all gradients together; 0: any", NULL, 0, 0},
    {"--schedule", CLI_CHOICE, FIELD(schedule), "none|step|cosine|plateau", "how the learning rate falls", NULL, 0, 0},
    {"--schedule-every", CLI_COUNT, FIELD(schedule_every), "K",
     "step: epochs from one fall to the next; plateau: without\na better validation result", "30; plateau: 10", 0, 0},
    {"--schedule-by", CLI_REAL, FIELD(schedule_by), "X", "step, plateau: what a fall multiplies the rate by", NULL, 0,
     0},
    {"--warmup", CLI_COUNT, FIELD(warmup), "N", "epochs over which the rate rises to --lr", NULL, 0, 0},
    {"--keep", CLI_CHOICE, FIELD(keep), "best|last",
     "weights of the best validation result (--keep-by), or the\nlast", "best, where it is known", 0, 0},
    {"--keep-by", CLI_CHOICE, FIELD(keep_by), "loss|accuracy|balanced|f1|micro_f1|auc|ap|mse|mae|r2",
     "figure of validation that --keep, --patience and the schedule\nplateau go by; balanced: the mean of the classes' "
     "accuracies", "loss; of numbers mse", 0, 0},
    {"--patience", CLI_COUNT, FIELD(patience), "K",
     "stop when the validation result has not been better for K\nepochs; 0: never", NULL, 0, 0},
    {"--seed", CLI_LONG, FIELD(seed), "S", "of the first weights and of dropout", NULL, 0, 0},
    {"--eval-every", CLI_COUNT, FIELD(eval_every), "K",
     "with dropout: epochs between evaluations; 0: at the end alone", NULL, 0, 0},
    {"--init", CLI_TEXT, FIELD(init), "W.safetensors", "weights to start from", "drawn, as the model says", 0, 0},
    {0},
};

const cli_option train_machine_options[] = {
    {"--device", CLI_TEXT, FIELD(device), "cpu[:N]|cuda[:N]",
     "what computes: processors, N parts of them, GPU N (0,1: both), or cpu,cuda:N", NULL, 0, 0},
    {"--topology", CLI_TEXT, FIELD(topology), "FILE",
     "of several devices: switches, the speed of their wires and their own (JSON)", "one switch", 0, 0},
    {"--matmul", CLI_CHOICE, FIELD(matmul), "fp32|tf32|bf16", "what a GPU's dense products may round to", NULL, 0, 0},
    {"--host-memory", CLI_SIZE, FIELD(host_memory), "SIZE", "most memory that is resident", "80 % of what is free", 0,
     0},
    {"--device-memory", CLI_SIZE, FIELD(device_memory), "SIZE",
     "most that a device holds; for cpu a part of the host's", "half of --host-memory", 0, 0},
    {"--threads", CLI_COUNT, FIELD(threads), "N", "threads that compute", "all", 0, 4096},
    {"--io-timeout", CLI_TIME, FIELD(io_timeout), "TIME",
     "end a run where no read, write or launch of a GPU comes back\nfor so long (90s, 10m); 0: never", NULL, 0, 0},
    {"--spill", CLI_TEXT, FIELD(spill), "DIR", "folder for what does not fit in memory", "inside the store", 0, 0},
    {"--spill-type", CLI_CHOICE, FIELD(spill_type), "f32|bf16", "what is kept for later stages may be rounded to", NULL,
     0, 0},
    {"--gather-type", CLI_CHOICE, FIELD(gather_type), "f32|bf16",
     "what edges read may be rounded to", NULL, 0, 0},
    {"--disk-to-device", CLI_CHOICE, FIELD(disk_to_device), "auto|yes|no",
     "edges come to one GPU past host memory (GPUDirect Storage);\nauto: where that is measured to be faster", NULL, 0,
     0},
    {"--no-cache", CLI_FLAG, FIELD(no_cache), NULL, "keep nothing in memory between tasks", NULL, 0, 0},
    {"--no-pipeline", CLI_FLAG, FIELD(no_pipeline), NULL, "read only when what was computed before is done", NULL, 0,
     0},
    {"--no-verify", CLI_FLAG, FIELD(no_verify), NULL, "do not check checksums as data arrives", NULL, 0, 0},
    {"--no-move", CLI_FLAG, FIELD(no_move), NULL, "do not move operators across an edge sum", NULL, 0, 0},
    {"--no-batch", CLI_FLAG, FIELD(no_batch), NULL, "do not multiply edges by the matrix of their type in batches",
     NULL, 0, 0},
    {"--no-hoist", CLI_FLAG, FIELD(no_hoist), NULL, "compute in every epoch what needs no parameter", NULL, 0, 0},
    {"--no-selective", CLI_FLAG, FIELD(no_selective), NULL, "read whole intervals of rows, needed or not", NULL, 0, 0},
    {"--no-prune", CLI_FLAG, FIELD(no_prune), NULL, "compute rows that the loss cannot see, too", NULL, 0, 0},
    {"--no-swap", CLI_FLAG, FIELD(no_swap), NULL, "take columns in store order", NULL, 0, 0},
    {"--no-chain", CLI_FLAG, FIELD(no_chain), NULL, "each of several devices takes all that it needs from the host",
     NULL, 0, 0},
    {"--no-spread", CLI_FLAG, FIELD(no_spread), NULL, "keep no rows of features for batches in the memory of GPUs",
     NULL, 0, 0},
    {"--no-fuse", CLI_FLAG, FIELD(no_fuse), NULL, "compute edges anew for each sum over them", NULL, 0, 0},
    {0},
};

const cli_option train_output_options[] = {
    {"--save", CLI_TEXT, FIELD(save), "W.safetensors", "where the final weights go", NULL, 0, 0},
    {"--logits", CLI_TEXT, FIELD(logits), "OUT.npy", "float32 [vertices, classes] of the final weights, input order",
     NULL, 0, 0},
    {"--trace", CLI_TEXT, FIELD(trace), "OUT.json",
     "the last epoch's tasks as Chrome trace events (Perfetto opens them)", NULL, 0, 0},
    {"--metrics", CLI_TEXT, FIELD(metrics), "OUT.jsonl", "one line of JSON an epoch", NULL, 0, 0},
    {0},
};

const cli_option train_checkpoint_options[] = {
    {"--checkpoint", CLI_TEXT, FIELD(checkpoint), "DIR", "folder for the run's state, the last two of it", NULL, 0, 0},
    {"--checkpoint-every", CLI_TEXT, FIELD(checkpoint_every), "K|10m", "epochs from one to the next, or 90s, 10m, 2h",
     "at most 2 % of the time", 0, 0},
    {"--resume", CLI_TEXT, FIELD(resume), "DIR",
     "go on from the newest state there, and keep the run's there;\nSTORE and options that are left out are the run's",
     NULL, 0, 0},
    {0},
};

const cli_option train_json_options[] = {
    {"--json", CLI_FLAG, offsetof(train_command, json), NULL, NULL, "print JSON", NULL, 0, 0},
    {0},
};

const char *const train_common_options[] = {
    "--json",   "--weights",     "--model",         "--layers",  "--hidden", "--heads",   "--dropout",
    "--epochs", "--lr",          "--weight-decay",  "--seed",    "--save",   "--logits",  "--metrics",
    "--trace",  "--host-memory", "--device-memory", "--threads", "--device", "--patience", "--checkpoint",
    "--resume", NULL,
};
