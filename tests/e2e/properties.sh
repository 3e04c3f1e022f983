#!/usr/bin/env bash
# properties.sh - what must not depend on how a run is laid out, and options
# against the reference: threads, dropout, element types, Adam, --undirected.
. "$(dirname "$0")/lib.sh"

input_of rough
epochs=5
for parts in 1 8; do
    run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/p$parts" --method fennel --parts $parts || finish
done

# train OUT STORE OPTIONS...: writes OUT.npy, OUT.safetensors and OUT.jsonl.
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    run "train ${out##*/}" "$GNNSTREAM" train "$store" --layers 2 --hidden 16 --epochs $epochs --seed 5 \
        --logits "$out.npy" --save "$out.safetensors" --metrics "$out.jsonl" "$@"
}

same_bytes()
{
    if cmp -s "$work/$2" "$work/$3"; then pass; else fail "$1: $2 and $3 differ"; fi
}

differ()
{
    if "$REFERENCE" compare "$work/$2" "$work/$3" --tolerance 1e-3 >"$work/compare" 2>&1; then
        fail "$1: $2 and $3 agree" "$work/compare"
    else
        pass
    fi
}

# ---- the same run again, with other threads, with another layout ----
for model in gcn sage; do
    dropped=(--model $model --dropout 0.5 --input-dropout 0.25 --lr 0.01)
    train $model.a p8 "${dropped[@]}" --threads 1
    train $model.b p8 "${dropped[@]}" --threads 1
    train $model.c p8 "${dropped[@]}" --threads 2
    train $model.d p1 "${dropped[@]}" --threads 2
    train $model.e p8 "${dropped[@]}" --threads 2 --no-cache
    train $model.f p8 "${dropped[@]}" --threads 1 --seed 6
    train $model.g p8 --model $model --lr 0.01 --threads 1
    same_bytes "$model: the same command twice" $model.a.npy $model.b.npy
    compare "$model, dropout: 2 threads against 1" "$work/$model.c.npy" "$work/$model.a.npy" 1e-4
    compare "$model, dropout: P=1 against P=8" "$work/$model.d.npy" "$work/$model.a.npy" 1e-4
    compare "$model, dropout: spilling against not" "$work/$model.e.npy" "$work/$model.a.npy" 1e-4
    differ "$model: another seed" $model.f.npy $model.a.npy
    differ "$model: dropout and none" $model.g.npy $model.a.npy
done

# ---- doubled edges, which are merged where their chunks stay in memory ----
"$GNNSTREAM" generate rmat "$work/doubled" --vertices 200 --edges 30000 --features 12 --classes 5 --seed 3 >/dev/null
run "partition doubled" "$GNNSTREAM" partition "$work/doubled" "$work/doubled.p2" --method fennel --parts 2 || finish
for model in gcn sage gin; do
    train $model.merged doubled.p2 --model $model --optimizer sgd --lr 1e-3
    train $model.each doubled.p2 --model $model --optimizer sgd --lr 1e-3 --no-cache
    compare "$model: merged edges against each" "$work/$model.merged.npy" "$work/$model.each.npy" 2e-4
done

# ---- against the reference ----
# against NAME STORE TOLERANCE MODEL "ENGINE OPTIONS" "REFERENCE OPTIONS" "BOTH"
against()
{
    local name=$1 store=$2 tolerance=$3 model=$4 both=$7 init=$work/$4.init.safetensors
    # shellcheck disable=SC2086
    reference "$init" --model "$model" --epochs $epochs --logits "$work/ref.npy" --save "$work/ref.safetensors" $6 $both
    # shellcheck disable=SC2086
    train out "$store" --model "$model" --init "$init" $5 $both || return
    compare "$name: logits" "$work/out.npy" "$work/ref.npy" "$tolerance"
    compare "$name: weights" "$work/out.safetensors" "$work/ref.safetensors" "$tolerance"
}

for model in gcn sage; do
    against "$model: Adam" p8 1e-3 $model "" "" "--optimizer adam --lr 0.02"
    against "$model: Adam with decay" p1 1e-3 $model "" "" "--optimizer adam --lr 0.02 --weight-decay 0.05"
    against "$model: SGD with decay" p8 1e-4 $model "" "" "--optimizer sgd --lr 0.5 --weight-decay 0.02"
done
for model in gcn sage; do
    against "$model: --no-move" p8 1e-4 $model "--no-move" "" "--optimizer sgd --lr 0.5"
    against "$model: --threads 1" p8 1e-4 $model "--threads 1 --no-cache" "" "--optimizer sgd --lr 0.5"
done
for type in bf16 f16; do
    run "partition $type" "$GNNSTREAM" partition "$input" "$work/$type" --parts 3 --method random --feature-type $type
    run "verify $type" "$GNNSTREAM" verify "$work/$type"
    for model in gcn sage; do
        against "$model: $type" $type 1e-4 $model "" "--feature-type $type" "--optimizer sgd --lr 0.5"
    done
done
run "partition --undirected" "$GNNSTREAM" partition "$input" "$work/und" --parts 3 --method fennel --undirected
for model in gcn sage; do
    against "$model: --undirected" und 1e-4 $model "" "--undirected" "--optimizer sgd --lr 0.5"
done

# ---- weights out and in again: 2 + 3 epochs of SGD are 5 ----
sgd=(--model sage --optimizer sgd --lr 0.3)
epochs=5 train whole p8 "${sgd[@]}" --init "$work/sage.init.safetensors"
epochs=2 train half p8 "${sgd[@]}" --init "$work/sage.init.safetensors"
epochs=3 train rest p8 "${sgd[@]}" --init "$work/half.safetensors"
same_bytes "2 + 3 epochs against 5" rest.npy whole.npy
same_bytes "2 + 3 epochs against 5" rest.safetensors whole.safetensors

# ---- predict computes what train did at its end ----
run predict "$GNNSTREAM" predict "$work/p1" --model sage --layers 2 --hidden 16 --weights "$work/whole.safetensors" \
    --logits "$work/predict.npy" && compare "predict against train" "$work/predict.npy" "$work/whole.npy" 1e-5
finish
